"""The fixed words of the web application, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

from stepscope.texts import Text

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
    "every_row": Text("Show all rows", "显示所有行"),
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
    "group_cluster_further": Text("More of all ranks", "所有 rank：更多"),
    "group_rank_further": Text("More of one rank", "单个 rank：更多"),
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
    "run_left": Text(
        "This run has left the list of runs, as its files are no longer there. What is shown is what was read before.",
        "此运行的文件已不存在，因此已从运行列表中移除。显示的是此前读取的内容。",
    ),
    "run_failed": Text("This run cannot be read.", "无法读取此运行。"),
    "run_waiting": Text("This run is not read yet.", "此运行尚未读取。"),
    "run_reading": Text("This run is being read; the page fills by itself.", "正在读取此运行；页面会自动填充。"),
    "run_analysing": Text(
        "This run is being analysed; pages that need much computing take longer until then.",
        "正在分析此运行；在此期间，计算量大的页面需要更长时间。",
    ),
    "run_unread": Text("{unread} inputs of this run could not be read.", "此运行有 {unread} 个输入无法读取。"),
    "nothing": Text("none", "无"),
    "reports": Text("Download the whole report", "下载完整报告"),
    "see": Text("See", "查看"),
    "in_timeline": Text("its place on the timeline", "时间线上的位置"),
    "report": Text("HTML report", "HTML 报告"),
}
