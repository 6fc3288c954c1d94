// The page around the Perfetto UI: hands the timeline over, and scrolls to times and tracks that its address names.
//
// Handing over and scrolling to a time are the UI's documented messages. What they cannot do (the start of the timeline,
// tracks, selections, import errors) asks the UI's own object `app`, which is reachable since the frame has the same
// origin, but no promise of the UI: without it the rest still works.
'use strict';

const frame = document.getElementById('ui');
const state = document.getElementById('state');
const MOST_ROWS = 36;  // tracks that are unfolded at first
let view = null;
let about = '';  // of the timeline: its size, or what is wrong with it
let isIncomplete = false;
let opened = null;  // a promise: the timeline is open

// What is said in Chinese, by the English words; the application has readers of both.
const CHINESE = {
  'Starting the viewer ...': '正在启动查看器……',
  'Loading {} of {} ...': '正在加载 {}，共 {}……',
  'Reading {} ...': '正在读取 {}……',
  'Not shown: {}': '未显示：{}',
  'Cannot show the timeline: {}': '无法显示时间线：{}',
  'Not all of the timeline could be read ({}). {}': '时间线未能全部读取（{}）。{}',
  '{}, without any event': '{}，没有任何事件',
  'the time is outside of the timeline': '该时间不在时间线内',
  'no track "{}"': '没有轨道“{}”',
  '{} is no whole number of nanoseconds': '{} 不是整数纳秒',
  zoom: '缩放', move: '移动', 'fit selection': '适应所选', search: '搜索', help: '帮助',
};

function worded(text, ...values) {
  const said = (document.documentElement.lang === 'zh' && CHINESE[text]) || text;
  return said.replace(/\{\}/g, () => values.shift());
}

function say(text, isProblem = false) {
  state.textContent = text;
  state.classList.toggle('problem', isProblem);
}

function megabytes(bytes) {
  return bytes < 1e5 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

// The timeline's bytes. The buffer has its final size from the start, so that a large one is held once.
async function download(url) {
  const response = await fetch(url, {cache: 'no-store'});
  if (!response.ok) throw new Error(`the timeline is no longer there (status ${response.status}); run stepscope view again`);
  const size = Number(response.headers.get('Content-Length'));
  let bytes;
  try {
    bytes = new Uint8Array(size);
  } catch {
    throw new Error(`the timeline (${megabytes(size)}) is larger than this browser can hold; ` +
      'choose fewer ranks or steps (--ranks, --steps)');
  }
  const reader = response.body.getReader();
  let at = 0;
  for (;;) {
    const {done, value} = await reader.read();
    if (done) break;
    bytes.set(value, at);
    at += value.length;
    say(worded('Loading {} of {} ...', megabytes(at), megabytes(size)));
  }
  if (at !== size) throw new Error('the timeline ended early; run stepscope view again');
  return bytes.buffer;
}

// Resolves when the UI listens: it answers PING only then, and what was sent before is lost.
function listening() {
  return new Promise((resolve) => {
    const ping = () => frame.contentWindow.postMessage('PING', location.origin);
    const timer = setInterval(ping, 100);
    window.addEventListener('message', function heard(event) {
      if (event.source !== frame.contentWindow || event.data !== 'PONG') return;
      clearInterval(timer);
      window.removeEventListener('message', heard);
      resolve();
    });
  });
}

function post(message, transferred = []) {
  frame.contentWindow.postMessage({perfetto: message}, location.origin, transferred);
}

// The UI's object of the open timeline, or null.
function timeline() {
  try {
    const app = frame.contentWindow.app;
    return app && !app.isLoadingTrace && app.trace ? app.trace : null;
  } catch {
    return null;
  }
}

// What the UI's dialog says if it cannot read the timeline; empty if there is none.
function refusal() {
  const dialog = frame.contentDocument.querySelector('.pf-modal-dialog');
  if (!dialog) return '';
  // the log's lines: address of the UI, the problem, then facts about trace and browser
  const lines = (dialog.querySelector('.pf-modal-logs') ?? dialog).innerText.split('\n').map((line) => line.trim());
  return lines.find((line) => line && !line.startsWith('UI:')) ?? 'no reason given';
}

// Waits for the end of loading, where that can be seen.
async function loaded() {
  for (;;) {
    const trace = timeline();
    if (trace) return trace;
    if (frame.contentWindow.app === undefined) return null;
    const problem = refusal();
    if (problem) throw new Error(`the viewer cannot read it (${problem})`);
    await pause(100);
  }
}

// Opens groups from the top, each with the groups in it, while about a screen of tracks shows.
function unfold(trace) {
  const top = trace.workspace.children;
  let rows = top.length;
  const open = (node) => {
    const more = node.collapsed ? node.children.length : 0;
    if (rows + more > MOST_ROWS) return false;
    rows += more;
    node.expand();
    return true;
  };
  for (const node of top) {
    if (!open(node)) return;
    node.children.forEach(open);
  }
}

// Rows of a query on the open timeline; integers beyond 2^53 are BigInt.
async function query(sql) {
  const trace = timeline();
  if (!trace) throw new Error('no timeline is open');
  const result = await trace.engine.query(sql);
  const names = result.columns();
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(Object.fromEntries(names.map((name) => [name, row.get(name)])));
  }
  return rows;
}

// Scrolls to a time range in seconds on the timeline's clock.
function scrollTo(start_s, end_s, viewPercentage = 0.8) {
  post({timeStart: start_s, timeEnd: end_s, viewPercentage});
}

function scrollToNs(start, end) {
  try {
    // exact; seconds as a double are off by up to 0.2 us for times since the epoch
    const margin = (end - start) / 8n + 1n;
    timeline().timeline.setViewportTime(start - margin, end + margin);
  } catch {
    scrollTo(Number(start) / 1e9, Number(end) / 1e9);
  }
}

// Whether the last names of a path are these, of groups around a track and its own; others may stand between them.
function endsWith(path, names, isSame) {
  let at = path.length - 1;
  if (!isSame(path[at], names[names.length - 1])) return false;
  for (const name of names.slice(0, -1).reverse()) {
    do at -= 1; while (at >= 0 && !isSame(path[at], name));
    if (at < 0) return false;
  }
  return true;
}

// The node of a track by its name and those of groups around it. Of each name the first words are enough, since the UI
// adds the number of a process or thread, and stepscope the host of a rank.
function findTrack(names) {
  const trace = timeline();
  if (!trace) return null;
  const isExact = (name, wanted) => name === wanted;
  const isBeginning = (name, wanted) => isExact(name, wanted) || name.startsWith(`${wanted} `);
  for (const isSame of [isExact, isBeginning]) {
    const found = trace.workspace.flatTracks.filter((node) => endsWith(node.fullPath, names, isSame));
    const withRanges = found.find((node) => trace.tracks.getTrack(node.uri)?.tags?.trackIds);
    if (found.length) return withRanges || found[0];
  }
  return null;
}

// Opens the groups around a track, scrolls to it, and selects the range on it with this start and end, if there is one.
async function showTrack(names, start, end) {
  const node = findTrack(names);
  if (!node) return false;
  const trace = timeline();
  const ids = trace.tracks.getTrack(node.uri)?.tags?.trackIds;
  if (ids?.length && start !== null && end !== null) {
    const rows = await query(`select id from slice where track_id in (${ids.join(',')}) and ts = ${start} and ` +
      `dur = ${end - start} order by depth limit 1`);
    if (rows.length) trace.selection.selectSqlEvent('slice', Number(rows[0].id));
    await pause(500);  // the details of the selection come up and would cover the track
  }
  trace.scrollTo({track: {uri: node.uri, expandGroup: true}});
  return true;
}

// Where the address points to: #start_ns=..&end_ns=..[&relative=1][&track=..]..., or the same after `?`.
function place() {
  const words = new URLSearchParams(location.hash.length > 1 ? location.hash.slice(1) : location.search);
  const problems = [];
  const time = (name) => {
    const text = words.get(name);
    if (text === null) return null;
    if (/^-?\d{1,19}$/.test(text)) return BigInt(text);
    problems.push(worded('{} is no whole number of nanoseconds', name));
    return null;
  };
  const [start, end] = [time('start_ns'), time('end_ns')];
  return {start, end, isRelative: words.get('relative') === '1', names: words.getAll('track'), problems};
}

async function goToPlace() {
  let {start, end, isRelative, names, problems} = place();
  const info = timeline()?.traceInfo;
  if (start !== null && isRelative) {
    if (info) {
      start += info.start;
      end = end === null ? null : end + info.start;
    } else {
      problems.push('this version of the UI does not say where the timeline starts');
      start = null;
    }
  }
  if (names.length && !info) problems.push('this version of the UI has no way to go to a track');
  else if (names.length && !await showTrack(names, start, end)) problems.push(worded('no track "{}"', names.join(' / ')));
  if (start !== null) {
    if (info && (start > info.end || (end ?? start) < info.start)) problems.push(worded('the time is outside of the timeline'));
    const half = info ? (info.end - info.start) / 100n + 1n : 1000000n;
    scrollToNs(end === null ? start - half : start, end === null ? start + half : end);
  }
  if (problems.length) say(worded('Not shown: {}', problems.join('; ')), true);
  else say(about, isIncomplete);
}

// What the UI lost while it read the timeline, so that an incomplete picture is not taken for a whole one.
async function losses() {
  const rows = await query("select name, sum(value) as n from stats where severity in ('error', 'data_loss') and value > 0 " +
    'group by name order by n desc, name');
  return rows.map((row) => `${row.name}: ${row.n}`);
}

// The UI keeps a copy of what it opens in the browser's storage, on disk, which would outlive the server. Browsers have no
// such storage for pages of other machines without encryption either, so the UI does without it.
function withoutStorage() {
  try {
    Object.defineProperty(frame.contentWindow, 'caches', {value: undefined});
  } catch { /* then it is deleted below */ }
}

async function forget() {
  try {
    await caches.delete('cached_traces');
  } catch { /* no such storage */ }
}

async function open() {
  // The same page shows many timelines in the web application: what follows `?` says which.
  const response = await fetch(`view.json${location.search}`, {cache: 'no-store'});
  view = await response.json();
  document.documentElement.lang = view.language ?? 'en';
  document.body.classList.toggle('embedded', Boolean(view.embedded));
  for (const hint of document.querySelectorAll('.hint [data-word]')) hint.textContent = worded(hint.dataset.word);
  if (!response.ok) throw new Error(view.problem);
  document.title = `${view.title} - stepscope`;
  document.getElementById('title').textContent = view.title;
  frame.src = view.ui;
  const buffer = await download(view.trace);
  const size = buffer.byteLength;
  say(worded('Starting the viewer ...'));
  await listening();
  say(worded('Reading {} ...', megabytes(size)));
  withoutStorage();
  post({buffer, title: view.title, fileName: view.file, url: location.href, keepApiOpen: true}, [buffer]);
  const trace = await loaded();
  await forget();
  about = megabytes(size);
  if (!trace) {
    say(about);
    return;
  }
  try {
    unfold(trace);
  } catch { /* then they stay folded */ }
  const lost = await losses().catch(() => []);
  const isEmpty = await query('select (select count(*) from slice) + (select count(*) from counter) as n')
    .then(([row]) => Number(row.n) === 0, () => false);
  isIncomplete = isEmpty || lost.length > 0;
  if (lost.length) about = worded('Not all of the timeline could be read ({}). {}', lost.slice(0, 3).join(', '), view.remedy).trim();
  else if (isEmpty) about = worded('{}, without any event', about);
  say(about, isIncomplete);
}

// Goes where the address points to; `data-state` of the body is `open` when all is done.
function arrive() {
  document.body.dataset.state = '';
  const isPlace = location.hash.length > 1 || location.search.length > 1;
  opened.then(() => (isPlace ? goToPlace() : null)).then(() => { document.body.dataset.state = 'open'; }, (error) => {
    document.body.dataset.state = 'failed';
    say(worded('Cannot show the timeline: {}', error.message), true);
  });
}

window.addEventListener('hashchange', arrive);
window.addEventListener('pagehide', forget);
opened = open();
arrive();
