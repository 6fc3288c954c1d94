"""The fixed words of the web application, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

from stepscope.advice.messages import Text

WORDS: Mapping[str, Text] = {
    "runs": Text("Runs", "运行"),
    "compare": Text("Compare", "比对"),
    "live": Text("Live", "实时"),
    "api": Text("API", "API"),
    "skip": Text("Skip to the content", "跳到内容"),
    "pages": Text("Pages", "页面"),
    "language": Text("Language", "语言"),
    "theme": Text("Theme", "主题"),
    "light": Text("Light", "浅色"),
    "dark": Text("Dark", "深色"),
    "auto": Text("As the system", "跟随系统"),
    "rank": Text("Rank", "Rank"),
    "stage": Text("Stage", "阶段"),
    "host": Text("Host", "主机"),
    "group": Text("Group", "通信组"),
    "lowest": Text("lowest", "最小"),
    "of_ranks": Text("of {ranks}", "共 {ranks}"),
    "apply": Text("Apply", "应用"),
    "search": Text("Search", "搜索"),
    "condition": Text("Condition, e.g. total_ms > 5", "条件，例如 total_ms > 5"),
    "condition_help": Text(
        "Rows that meet a condition in SQL over the columns of the table, e.g. total_ms > 5 AND type = 'Conv2D'",
        "满足 SQL 条件的行，条件针对表中的列，例如 total_ms > 5 AND type = 'Conv2D'",
    ),
    "previous": Text("Previous", "上一页"),
    "next": Text("Next", "下一页"),
    "page_of": Text("page {number} of {pages}", "第 {number} 页，共 {pages} 页"),
    "rows": Text("Rows", "行数"),
    "all_columns": Text("All columns", "所有列"),
    "fewer_columns": Text("Fewer columns", "较少的列"),
    "download": Text("Download all rows", "下载所有行"),
    "table": Text("Table", "数据表"),
    "more_rows": Text("{count} more rows are not shown here.", "另有 {count} 行未在此显示。"),
    "advice": Text("Findings here", "此页的发现"),
    "no_advice_here": Text("Nothing was found that concerns this page.", "没有与此页相关的发现。"),
    "all_findings": Text("All findings ({count})", "所有发现（{count}）"),
    "computing": Text("Computing…", "正在计算……"),
    "failed": Text(
        "This part could not be shown: {error}. The others are not affected; the server's terminal says more.",
        "此部分无法显示：{error}。其他部分不受影响；详情见服务器终端。",
    ),
    "no_page": Text("There is no page {name}. Choose one from the list.", "没有页面 {name}。请从列表中选择。"),
    "overview": Text("Overview", "概览"),
    "group_run": Text("The run", "整个运行"),
    "group_rank": Text("One rank", "单个 rank"),
    "group_cluster": Text("All ranks", "所有 rank"),
    "group_further": Text("Further", "更多"),
    "state_waiting": Text("waiting to be read", "等待读取"),
    "state_reading": Text("being read", "正在读取"),
    "state_analysing": Text("being analysed", "正在分析"),
    "state_ready": Text("ready", "就绪"),
    "state_failed": Text("cannot be read", "无法读取"),
    "state_gone": Text("was removed", "已被移除"),
    "run_gone": Text(
        "The files of this run were removed or moved while it was shown: {path}. Put them back, or go to the list of "
        "runs.",
        "显示期间，此运行的文件已被移除或移动：{path}。请将其放回，或返回运行列表。",
    ),
    "report": Text("HTML report", "HTML 报告"),
}
