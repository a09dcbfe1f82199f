"""The style sheet of reports: light and dark, screen and print."""

CSS = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2430;--soft:#5a6675;--rule:#dfe4ea;--card:#f7f8fa;
--s0:#0067a5;--s1:#c8501e;--s2:#12805c;--s3:#8e5ba6;--s4:#a07400;--s5:#4d5968;
--good:#12805c;--bad:#b3361b;--new:#0067a5}
@media (prefers-color-scheme:dark){:root{--bg:#14181e;--fg:#e4e9ef;--soft:#9aa7b5;--rule:#2d3640;
--card:#1b2128;--s0:#5cb3f0;--s1:#f2905f;--s2:#4cc79a;--s3:#c79be0;--s4:#dcb84a;--s5:#a3b0be;
--good:#4cc79a;--bad:#f2806a;--new:#5cb3f0}}
@media print{*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
:root{color-scheme:light;--bg:#fff;--fg:#000;--soft:#444;--rule:#bbb;--card:#fff}
figure,article{break-inside:avoid}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1060px;margin:0 auto;padding:32px 20px 48px}
h1{font-size:28px;line-height:1.2;margin:0 0 6px}
h2{font-size:20px;margin:40px 0 12px;padding-bottom:6px;border-bottom:1px solid var(--rule)}
h3{font-size:16px;margin:0 0 4px;overflow-wrap:anywhere}
h4{font-size:13px;margin:12px 0 4px}
.lead{font-size:17px;color:var(--soft);margin:0 0 18px;max-width:75ch}
.note{color:var(--soft);font-size:13px;margin:8px 0 0}
.facts{display:flex;flex-wrap:wrap;gap:10px 36px;margin:0}
.facts dt{color:var(--soft);font-size:12.5px}
.facts dd{margin:0;font-size:19px;font-weight:600;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}
th,td{padding:7px 12px;text-align:right;border-bottom:1px solid var(--rule);vertical-align:top}
th{font-weight:600}
th:first-child{text-align:left}
thead th{color:var(--soft);font-size:13px;vertical-align:bottom}
td:nth-child(2){background:var(--card)}
td small{display:block;color:var(--soft);font-size:11.5px;white-space:nowrap}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:22px}
figure{margin:0;padding:16px;background:var(--card);border:1px solid var(--rule);border-radius:8px}
figcaption{font-weight:600;margin-bottom:8px}
figure svg{display:block;width:100%;height:auto}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:13px;margin-bottom:6px}
.key{display:inline-flex;align-items:center;gap:6px}
.swatch{width:12px;height:12px;border-radius:2px}
.b0{background:var(--s0)}.b1{background:var(--s1)}.b2{background:var(--s2)}
.b3{background:var(--s3)}.b4{background:var(--s4)}.b5{background:var(--s5)}
figure .key svg{width:30px;height:12px}
svg text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:var(--soft)}
svg .label{fill:var(--fg)}
.axis{stroke:var(--soft)}
.grid{stroke:var(--rule)}
.diagonal{stroke:var(--soft);stroke-dasharray:5 4}
.line{fill:none;stroke-width:2}
.line.s0{stroke-width:2.6}
.mark{stroke:none}
.quiet{fill:var(--s0);opacity:.45}
.line.s0{stroke:var(--s0)}.line.s1{stroke:var(--s1)}.line.s2{stroke:var(--s2)}
.line.s3{stroke:var(--s3)}.line.s4{stroke:var(--s4)}.line.s5{stroke:var(--s5)}
.mark.s0,.fill.s0{fill:var(--s0)}.mark.s1,.fill.s1{fill:var(--s1)}.mark.s2,.fill.s2{fill:var(--s2)}
.mark.s3,.fill.s3{fill:var(--s3)}.mark.s4,.fill.s4{fill:var(--s4)}.mark.s5,.fill.s5{fill:var(--s5)}
article{padding:16px;margin:14px 0;border:1px solid var(--rule);border-radius:8px}
article p{margin:0;color:var(--soft)}
article ul{margin:0;padding-left:20px}
article li{margin:3px 0;overflow-wrap:anywhere}
small{color:var(--soft)}
.why{color:var(--soft);font-size:13px}
.effect{font-variant-numeric:tabular-nums;color:var(--fg)}
.found{color:var(--good)}.missed{color:var(--bad)}.new{color:var(--new)}
footer{margin-top:40px;color:var(--soft);font-size:12.5px}
""".strip()
