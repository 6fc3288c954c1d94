// Draws the figures of a page: unpacks Plotly, gives each figure the template of the page's theme, and folds its table.
// If anything of this fails, the tables stay open.
(function () {
  "use strict";
  var themes = JSON.parse(document.getElementById("ss-themes").textContent);
  var nonce = (document.currentScript || {}).nonce;
  var drawn = [];
  var forced = null;
  var config = {
    responsive: true,
    displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    locales: {
      "zh": {
        dictionary: {
          "Autoscale": "自动缩放", "Download plot as a PNG": "下载为 PNG", "Download plot": "下载图片", "Pan": "平移",
          "Reset axes": "重置坐标轴", "Reset": "重置", "Zoom": "缩放", "Zoom in": "放大", "Zoom out": "缩小",
          "Double-click to zoom back out": "双击还原", "Taking snapshot - this may take a few seconds": "正在生成图片",
          "Click to enter Colorscale title": "", "Toggle show closest data on hover": "显示最近的数据"
        },
        format: {}
      }
    }
  };
  function theme() {
    var root = document.documentElement;
    var named = forced || root.getAttribute("data-theme") || root.getAttribute("data-color-scheme");
    if (named === "dark" || named === "light") return named;
    return window.matchMedia && window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  function unpack() {
    var element = document.getElementById("ss-plotly");
    var text = atob(element.textContent.trim());
    var bytes = new Uint8Array(text.length);
    for (var k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text().then(function (source) {
      var script = document.createElement("script");
      if (nonce) script.nonce = nonce;
      script.textContent = source;
      document.head.appendChild(script);
      element.remove();
      if (!window.Plotly) throw new Error("Plotly does not run here");
    });
  }
  function draw(figure) {
    var plot = figure.querySelector(".ss-plot");
    var spec = JSON.parse(figure.querySelector(".ss-spec").textContent);
    var now = theme();
    spec.layout.template = themes[now];
    spec.layout.autosize = true;
    plot.hidden = false;
    var options = figure.lang === "zh" ? Object.assign({locale: "zh"}, config) : config;
    return Promise.resolve().then(function () {
      return window.Plotly.newPlot(plot, spec.data, spec.layout, options);
    }).then(function () {
      drawn.push({plot: plot, theme: now});
      figure.querySelector(".ss-table").open = false;
    }).catch(function (reason) {
      plot.hidden = true;
      console.error(reason);
    });
  }
  function follow() {
    var now = theme();
    drawn.forEach(function (one) {
      if (one.theme === now) return;
      one.theme = now;
      window.Plotly.relayout(one.plot, {template: themes[now]});
    });
  }
  // Hidden parts of a page (tabs, details) have no width: their figures take it when they are shown.
  function fit(plot) {
    if (window.ResizeObserver) {
      new ResizeObserver(function () {
        if (plot.offsetWidth && window.Plotly) window.Plotly.Plots.resize(plot);
      }).observe(plot.parentElement);
    }
  }
  function start() {
    var figures = Array.prototype.slice.call(document.querySelectorAll(".ss-figure"));
    unpack().then(function () {
      return figures.reduce(function (before, figure) {
        return before.then(function () { return draw(figure); }).then(function () { fit(figure.querySelector(".ss-plot")); });
      }, Promise.resolve());
    }).then(function () {
      document.documentElement.setAttribute("data-figures", "drawn");
    }).catch(function (reason) {
      document.documentElement.setAttribute("data-figures", "failed");
      console.error(reason);
    });
  }
  window.stepscopeFigures = {
    theme: function (name) { forced = name || null; follow(); }
  };
  if (window.matchMedia) window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", follow);
  new MutationObserver(follow).observe(document.documentElement, {attributes: true, attributeFilter: ["data-theme", "data-color-scheme"]});
  window.addEventListener("beforeprint", function () { forced = "light"; follow(); });
  window.addEventListener("afterprint", function () { forced = null; follow(); });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start); else start();
})();
