"""The words of the page of a running job, in English and Chinese."""

from __future__ import annotations

from stepscope.texts import Text
from stepscope.web.ui.context import Context

WORDS = {
    "about": Text(
        "A job while it runs: asked of its manager once a second.",
        "运行中的作业：每秒向其管理器查询一次。",
    ),
    "how": Text(
        "No running job is shown: this server was started without `--live`. Start tracing with "
        "`stepscope live manager` and `STEPSCOPE_LIVE=1` in the environment of the job, then start the server with "
        "`--live here` (the manager of this machine) or `--live HOST:PORT`.",
        "未显示运行中的作业：此服务启动时未指定 `--live`。请运行 `stepscope live manager`，在作业环境中设置 "
        "`STEPSCOPE_LIVE=1`，然后以 `--live here`（本机的管理器）或 `--live 主机:端口` 启动此服务。",
    ),
    "records": Text("Light records below the served directories", "所服务目录下的轻量记录"),
    "no_records": Text("There are none.", "没有。"),
    "waiting": Text("Waiting for the manager", "正在等待管理器"),
    "old": Text("Not up to date: {problem}", "不是最新状态：{problem}"),
    "summary": Text(
        "Job {job}: {alive} of {ranks} ranks, on {hosts}; step {step}, {time} a step",
        "作业 {job}：{ranks} 个 rank 中有 {alive} 个在运行（{hosts}）；第 {step} 步，每步 {time}",
    ),
    "measure": Text("Shows", "显示"),
    "step": Text("Step time", "步时间"),
    "data": Text("Wait for data", "等待数据"),
    "forward": Text("Forward pass", "前向"),
    "ranks": Text("Ranks, e.g. 0,3-5", "Rank，例如 0,3-5"),
    "lines": Text("{measure} by rank", "各 rank 的{measure}"),
    "map": Text("{measure}, rank by step", "{measure}：按 rank 与步"),
    "no_steps": Text("No steps have been reported yet.", "尚未收到任何一步。"),
    "table": Text("Ranks, the worst first", "各 rank，最差者在前"),
    "rank": Text("rank", "rank"),
    "host": Text("host", "主机"),
    "state": Text("state", "状态"),
    "last": Text("step", "步"),
    "communication": Text("communication", "通信"),
    "own": Text("own time", "自身耗时"),
    "inside": Text("is in", "所处位置"),
    "more": Text("and {count} more", "另有 {count} 个"),
    "verdicts": Text("Who is slow", "谁慢"),
    "over": Text("Over", "已结束"),
    "switches": Text("What is recorded", "记录内容"),
    "on": Text("on", "开"),
    "off": Text("off", "关"),
    "turn_on": Text("Switch on", "打开"),
    "turn_off": Text("Switch off", "关闭"),
    "revision": Text(
        "Revision {revision}: applied by {applied} of {there} ranks{by}.",
        "版本 {revision}：{there} 个 rank 中有 {applied} 个已应用{by}。",
    ),
    "asked_by": Text(", requested by {by}", "，由 {by} 请求"),
    "pending": Text("Not applied yet by {ranks}.", "尚未应用：{ranks}。"),
    "failed": Text("Rank {rank} cannot apply them: {error}", "rank {rank} 无法应用：{error}"),
    "read_only": Text(
        "To switch and to profile from here, start the server with a token: --token-file FILE.",
        "若要在此切换或采集，请以令牌启动服务：--token-file 文件。",
    ),
    "ask_switch": Text("Switch {kind} {state} on all ranks of the job?", "在作业的所有 rank 上将{kind}切换为{state}？"),
    "profile": Text("Profile ranks", "采集 rank 的性能数据"),
    "profile_ranks": Text("Ranks to profile", "要采集的 rank"),
    "profile_steps": Text("Steps", "步数"),
    "do_profile": Text("Profile {ranks}, {steps} steps", "采集 {ranks}，{steps} 步"),
    "ask_profile": Text(
        "Profile {steps} steps of {ranks}? Training is slower meanwhile.",
        "采集 {ranks} 的 {steps} 步？期间训练会变慢。",
    ),
    "yes": Text("Do it", "执行"),
    "no": Text("Leave it", "取消"),
    "working": Text("Working…", "正在执行……"),
    "switched": Text("Switched: applied by {count} ranks.", "已切换：{count} 个 rank 已应用。"),
    "running": Text("running", "进行中"),
    "ended": Text("done", "完成"),
    "failed_capture": Text("failed", "失败"),
    "captures": Text("Profiles", "性能数据"),
    "opens": Text("Open", "打开"),
    "elsewhere": Text(
        "Not below the served directories: stepscope analyze {path}", "不在所服务的目录下：stepscope analyze {path}"
    ),
    "all": Text("all", "全部"),
}


def said(context: Context, key: str) -> str:
    """A word of the page in the reader's language."""
    return WORDS[key].of(context.language)


def every_word(context: Context) -> dict[str, str]:
    """All words of the page in the reader's language."""
    return {key: text.of(context.language) for key, text in WORDS.items()}
