"""Writes the dashboards for Grafana, dashboards/*.json, from what is declared here.

  python3 deploy/monitoring/dashboards.py           writes them
  python3 deploy/monitoring/dashboards.py --check   fails if they are not what this would write

A panel is one line: its title, its queries, and how values are shown. In queries, `$i` stands for the
gateways that are selected, and `$r` for the window of rates.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "dashboards"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Of 24 columns.
WIDTHS = {"stat": 4, "timeseries": 8, "table": 12}
HEIGHTS = {"stat": 4, "timeseries": 8, "table": 8}
HITS = 'cache=~"hit|hit_stale|revalidated|collapsed"'


@dataclass(frozen=True)
class Panel:
    title: str
    # A query, or several with their legends.
    queries: str | dict[str, str]
    unit: str = "short"
    legend: str = ""
    kind: str = "timeseries"
    stacked: bool = False
    help: str = ""


@dataclass(frozen=True)
class Dashboard:
    name: str
    title: str
    help: str
    rows: dict[str, list[Panel]]
    hosts: bool = False  # whether a host entry is chosen


def stat(title: str, query: str, unit: str = "short", help: str = "") -> Panel:
    return Panel(title, query, unit, kind="stat", help=help)


def table(title: str, query: str, unit: str = "short", help: str = "") -> Panel:
    return Panel(title, query, unit, kind="table", help=help)


def quantiles(metric: str, by: str, *labels: str) -> dict[str, str]:
    """The median and what the slowest wait, of a histogram."""
    selected = ",".join(["$i", *labels])
    return {f"{share} {{{{{by}}}}}" if by else share:
            f"histogram_quantile({quantile}, sum by (le{', ' + by if by else ''}) "
            f"(rate({metric}_bucket{{{selected}}}[$r])))"
            for share, quantile in [("50 %", 0.5), ("95 %", 0.95), ("99 %", 0.99)]}


def days(expression: str) -> str:
    return f"sort(({expression} - time()) / 86400)"


OVERVIEW = Dashboard(
    "overview", "Pinfold: overview", "What clients get, what fails and why, and what is near a limit.", {
        "Now": [
            stat("Gateways that are ready", "sum(pinfold_ready{$i})"),
            stat("Requests", "sum(rate(pinfold_http_requests_total{$i}[$r]))", "reqps"),
            stat("Failures", "sum(rate(pinfold_failures_total{$i}[$r])) "
                 "/ sum(rate(pinfold_http_requests_total{$i}[$r]))", "percentunit",
                 "Of all exchanges, those that were refused, failed or were cut off."),
            stat("99 % are done within", "histogram_quantile(0.99, sum by (le) "
                 "(rate(pinfold_http_request_duration_seconds_bucket{$i}[$r])))", "s"),
            stat("Answered by the cache",
                 f"sum(rate(pinfold_http_requests_total{{$i,{HITS}}}[$r])) "
                 '/ sum(rate(pinfold_http_requests_total{$i,cache!="none"}[$r]))', "percentunit"),
            stat("Servers not reachable",
                 'sum(pinfold_host_reachability{$i,state="not_reachable"})'),
        ],
        "Requests": [
            Panel("Responses by status", "sum by (code) (rate(pinfold_http_responses_total{$i}[$r]))",
                  "reqps", "{{code}}", stacked=True),
            Panel("Failures by reason", "sum by (reason) (rate(pinfold_failures_total{$i}[$r])) > 0",
                  "reqps", "{{reason}}", stacked=True, help="The page Reasons explains each."),
            Panel("How long clients wait", quantiles("pinfold_http_request_duration_seconds", ""), "s"),
            Panel("Requests by listener",
                  "sum by (listener) (rate(pinfold_http_requests_total{$i}[$r]))", "reqps",
                  "{{listener}}"),
            Panel("Busiest host entries",
                  "topk(10, sum by (host) (rate(pinfold_http_requests_total{$i}[$r])))", "reqps",
                  "{{host}}"),
            Panel("Host entries that fail most",
                  "topk(10, sum by (host) (rate(pinfold_host_failures_total{$i}[$r])))", "reqps",
                  "{{host}}"),
            Panel("Bytes to and from clients", {
                "to clients": "sum(rate(pinfold_client_sent_bytes_total{$i}[$r]))",
                "from clients": "sum(rate(pinfold_client_received_bytes_total{$i}[$r]))"}, "Bps"),
            Panel("In progress", {
                "requests": "sum(pinfold_http_requests_in_flight{$i})",
                "tunnels": "sum(pinfold_tunnels_open{$i})"}),
            Panel("Tunnels by how they were judged",
                  "sum by (result) (rate(pinfold_host_tunnels_total{$i}[$r]))", "cps", "{{result}}",
                  stacked=True),
        ],
        "Servers": [
            Panel("What requests spend their time on",
                  "sum by (phase) (rate(pinfold_host_phase_duration_seconds_sum{$i}[$r]))", "s",
                  "{{phase}}", stacked=True, help="Seconds in each second, of all requests together."),
            Panel("Slowest to answer", "topk(10, histogram_quantile(0.95, sum by (le, host) "
                  "(rate(pinfold_upstream_first_byte_seconds_bucket{$i}[$r]))))", "s", "{{host}}",
                  help="From the request's head to the response's, 95th percentile."),
            Panel("Handshakes by result", "sum by (result) (rate(pinfold_tls_handshakes_total{$i}[$r]))",
                  "cps", "{{result}}", stacked=True),
            Panel("Connections to servers", {
                "open": "sum(pinfold_upstream_connections_open{$i})",
                "idle": "sum(pinfold_upstream_connections_idle{$i})",
                "waited for": "sum(pinfold_upstream_pool_waiting{$i})"}),
            Panel("Connections that cannot be made",
                  "sum by (reason) (rate(pinfold_upstream_connect_failures_total{$i}[$r]))", "cps",
                  "{{reason}}", stacked=True),
            Panel("Name servers", "sum by (result) (rate(pinfold_dns_answers_total{$i}[$r]))", "reqps",
                  "{{result}}", stacked=True),
        ],
        "The process": [
            Panel("Workers: time busy", "rate(pinfold_worker_busy_seconds_total{$i}[$r])", "percentunit",
                  "{{instance}} {{worker}}"),
            Panel("Workers: longest turn", "pinfold_worker_longest_turn_seconds{$i}", "s",
                  "{{instance}} {{worker}}"),
            Panel("What is used of limits", {
                "clients' connections":
                    "max(pinfold_client_connections_open{$i} / pinfold_client_connections_limit{$i})",
                "connections of one client": "max(pinfold_busiest_client_connections{$i} "
                                             "/ pinfold_per_client_connections_limit{$i})",
                "requests of one client": "max(pinfold_busiest_client_exchanges{$i} "
                                          "/ pinfold_per_client_exchanges_limit{$i})",
                "servers' connections":
                    "max(pinfold_upstream_connections_open{$i} / pinfold_upstream_connections_limit{$i})",
                "connections to one server": "max(pinfold_busiest_origin_connections{$i} "
                                             "/ pinfold_origin_connections_limit{$i})",
                "waiting for one server":
                    "max(pinfold_busiest_origin_waiting{$i} / pinfold_origin_waiting_limit{$i})",
                "incomplete heads": "max(pinfold_client_head_buffer_bytes{$i} "
                                    "/ pinfold_client_head_buffer_limit_bytes{$i})",
                "open files": "max(process_open_fds{$i} / process_max_fds{$i})"}, "percentunit"),
            Panel("Memory", "process_resident_memory_bytes{$i}", "bytes", "{{instance}}"),
            Panel("Processor", "rate(process_cpu_seconds_total{$i}[$r])", "percentunit", "{{instance}}"),
            Panel("Lines of logs that are lost", {
                "access log": "sum(rate(pinfold_access_log_dropped_lines_total{$i}[$r]))",
                "operational log": "sum(rate(pinfold_log_dropped_lines_total{$i}[$r]))"}),
        ]})

PINS = Dashboard(
    "pins", "Pinfold: pins and certificates",
    "What servers proved, which pins they have, and what expires when.", {
        "Now": [
            stat("Refused by pins in an hour",
                 'sum(increase(pinfold_pin_evaluations_total{$i,result="no_pin_matched"}[1h]))'),
            stat("Reported in an hour",
                 'sum(increase(pinfold_pin_evaluations_total{$i,result="reported"}[1h]))'),
            stat("Pinsets that refuse", "sum(pinfold_pinset_enforced{$i})"),
            stat("Pins without a match", "count(pinfold_pin_matches_total{$i} == 0)",
                 help="Backups, or forgotten ones."),
            stat("First pinset to expire",
                 "min(pinfold_pinset_expiry_timestamp_seconds{$i}) - time()", "s"),
            stat("First certificate to expire",
                 "min(pinfold_certificate_not_after_timestamp_seconds{$i}) - time()", "s"),
        ],
        "Pins": [
            Panel("Servers by pinset and result", "sum by (pinset, result) "
                  "(rate(pinfold_pin_evaluations_total{$i}[$r])) > 0", "cps",
                  "{{pinset}} {{result}}"),
            Panel("Servers that fail", "sum by (pinset, result) (increase("
                  'pinfold_pin_evaluations_total{$i,result!="passed"}[$r]))', "short",
                  "{{pinset}} {{result}}"),
            Panel("Reports of failures", "sum by (result) (rate(pinfold_pin_reports_total{$i}[$r]))",
                  "cps", "{{result}}"),
            Panel("New keys of servers without pins", "sum by (issuer) "
                  "(increase(pinfold_pin_observed_new_keys_total{$i}[$r]))", "short",
                  "under an issuer that is {{issuer}}"),
            table("Matches of each pin", "sum by (pinset, pin) (pinfold_pin_matches_total{$i})",
                  help="Since the start. A pin at 0 is a backup, or forgotten."),
            table("Pinsets by days left", days("min by (pinset) "
                                               "(pinfold_pinset_expiry_timestamp_seconds{$i})"), "d"),
        ],
        "Certificates": [
            table("Of servers, by days left", days(
                "min by (host) (pinfold_certificate_not_after_timestamp_seconds"
                '{$i,use="upstream"})'), "d"),
            table("Of the gateway itself, by days left", days(
                "min by (use, file) (pinfold_certificate_not_after_timestamp_seconds"
                '{$i,use!="upstream"})'), "d"),
            table("Chains of servers, by days left", days(
                "min by (host) (pinfold_chain_not_after_timestamp_seconds{$i})"), "d"),
        ],
        "Handshakes and tunnels": [
            Panel("Handshakes with servers, by result",
                  "sum by (result) (rate(pinfold_tls_handshakes_total{$i}[$r]))", "cps", "{{result}}",
                  stacked=True),
            Panel("Reasons not to trust a server",
                  'sum by (reason) (increase(pinfold_failures_total{$i,reason=~"tls-.*"}[$r])) > 0',
                  "short", "{{reason}}"),
            Panel("Tunnels that pass unverified", "topk(10, sum by (host) (rate("
                  'pinfold_host_tunnels_total{$i,result=~"relayed|passed"}[$r])))', "cps", "{{host}}"),
            Panel("Clients that reject our certificates",
                  "sum by (host) (increase(pinfold_interception_rejections_total{$i}[$r]))", "short",
                  "{{host}}"),
            Panel("Intercepted tunnels given up",
                  "sum by (host) (increase(pinfold_interception_given_up_total{$i}[$r]))", "short",
                  "{{host}}"),
            Panel("Handshakes of clients that fail", "sum by (reason) "
                  "(rate(pinfold_client_tls_failures_total{$i}[$r]))", "cps", "{{reason}}",
                  stacked=True),
        ]})

CACHE = Dashboard(
    "cache", "Pinfold: cache", "How much the cache saves, what is not stored and why, and its disk.", {
        "Now": [
            stat("Requests answered",
                 f"sum(rate(pinfold_http_requests_total{{$i,{HITS}}}[$r])) "
                 '/ sum(rate(pinfold_http_requests_total{$i,cache!="none"}[$r]))', "percentunit"),
            stat("Bytes saved", f"sum(rate(pinfold_http_response_content_bytes_total{{$i,{HITS}}}[$r])) "
                 '/ sum(rate(pinfold_http_response_content_bytes_total{$i,cache!="none"}[$r]))',
                 "percentunit"),
            stat("Memory in use", 'sum(pinfold_cache_size_bytes{$i,tier="memory"}) '
                 '/ sum(pinfold_cache_limit_bytes{$i,tier="memory"})', "percentunit"),
            stat("Disk in use", 'sum(pinfold_cache_size_bytes{$i,tier="disk"}) '
                 '/ sum(pinfold_cache_limit_bytes{$i,tier="disk"})', "percentunit"),
            stat("Stored responses", 'sum(pinfold_cache_entries{$i,tier="disk"})'),
            stat("Disks that work", 'sum(pinfold_cache_disk_state{$i,state="on"})'),
        ],
        "Requests": [
            Panel("By result", 'sum by (cache) (rate(pinfold_http_requests_total{$i,cache!="none"}[$r]))',
                  "reqps", "{{cache}}", stacked=True),
            Panel("Bytes by result", "sum by (cache) (rate(pinfold_http_response_content_bytes_total"
                  '{$i,cache!="none"}[$r]))', "Bps", "{{cache}}", stacked=True),
            Panel("Why responses are not stored",
                  "topk(10, sum by (reason) (rate(pinfold_cache_not_stored_total{$i}[$r])))", "reqps",
                  "{{reason}}", stacked=True),
            Panel("Host entries by share answered", "topk(10, sum by (host) "
                  f"(rate(pinfold_http_requests_total{{$i,{HITS}}}[$r])) / sum by (host) "
                  '(rate(pinfold_http_requests_total{$i,cache!="none"}[$r])))', "percentunit",
                  "{{host}}"),
            Panel("Hits by tier", "sum by (tier) (rate(pinfold_cache_hits_total{$i}[$r]))", "reqps",
                  "{{tier}}", stacked=True),
            Panel("Requests that share a response", {
                "waits": "sum(rate(pinfold_cache_collapse_waits_total{$i}[$r]))",
                "responses under way": "sum(pinfold_cache_bodies_under_way{$i})",
                "their readers": "sum(pinfold_cache_body_readers{$i})"}),
        ],
        "What is stored": [
            Panel("Bytes", {
                "{{tier}}": "sum by (tier) (pinfold_cache_size_bytes{$i})",
                "limit {{tier}}": "sum by (tier) (pinfold_cache_limit_bytes{$i})"}, "bytes"),
            Panel("Responses", {
                "{{tier}}": "sum by (tier) (pinfold_cache_entries{$i})",
                "limit {{tier}}": "sum by (tier) (pinfold_cache_entries_limit{$i})"}),
            Panel("Stored and evicted", {
                "stored": "sum(rate(pinfold_cache_stores_total{$i}[$r]))",
                "evicted {{tier}}": "sum by (tier) (rate(pinfold_cache_evictions_total{$i}[$r]))",
                "purged {{tier}}": "sum by (tier) (rate(pinfold_cache_purged_entries_total{$i}[$r]))"},
                "reqps"),
        ],
        "The disk": [
            Panel("State", "sum by (state) (pinfold_cache_disk_state{$i}) > 0", "short", "{{state}}"),
            Panel("Waiting to be written", {
                "bytes": "sum(pinfold_cache_store_queue_bytes{$i})",
                "limit": "sum(pinfold_cache_store_queue_limit_bytes{$i})"}, "bytes"),
            Panel("Written and not written", {
                "written": "sum(rate(pinfold_cache_disk_writes_total{$i}[$r]))",
                "no room": "sum(rate(pinfold_cache_store_dropped_total{$i}[$r]))",
                "damaged": "sum(rate(pinfold_cache_damaged_entries_total{$i}[$r]))"}, "reqps"),
        ]})

HOST = Dashboard(
    "host", "Pinfold: one host", "Everything about the servers of one host entry.", {
        "Now": [
            stat("Requests", "sum(rate(pinfold_http_requests_total{$i,$h}[$r]))", "reqps"),
            stat("Failures", "sum(rate(pinfold_host_failures_total{$i,$h}[$r])) "
                 "/ sum(rate(pinfold_http_requests_total{$i,$h}[$r]))", "percentunit"),
            stat("95 % answer within", "histogram_quantile(0.95, sum by (le) "
                 "(rate(pinfold_upstream_first_byte_seconds_bucket{$i,$h}[$r])))", "s"),
            stat("Servers not reachable",
                 'sum(pinfold_host_reachability{$i,$h,state="not_reachable"})'),
            stat("Certificate expires in", "min(pinfold_certificate_not_after_timestamp_seconds"
                 "{$i,$h}) - time()", "s"),
            stat("Waiting for a connection", "sum(pinfold_host_waiting{$i,$h})"),
        ],
        "Requests": [
            Panel("Responses by status",
                  "sum by (code) (rate(pinfold_http_responses_total{$i,$h}[$r]))", "reqps", "{{code}}",
                  stacked=True),
            Panel("Failures by reason",
                  "sum by (reason) (rate(pinfold_http_request_failures_total{$i,$h}[$r]))", "reqps",
                  "{{reason}}", stacked=True),
            Panel("How long clients wait",
                  quantiles("pinfold_http_request_duration_seconds", "", "$h"), "s"),
            Panel("Cache", "sum by (cache) (rate(pinfold_http_requests_total{$i,$h}[$r]))", "reqps",
                  "{{cache}}", stacked=True),
            Panel("Tunnels by how they were judged",
                  "sum by (result) (rate(pinfold_host_tunnels_total{$i,$h}[$r]))", "cps", "{{result}}",
                  stacked=True),
            Panel("Bytes of responses",
                  "sum(rate(pinfold_http_response_size_bytes_sum{$i,$h}[$r]))", "Bps", "sent"),
        ],
        "Where the time goes": [
            Panel("A request's time by phase", "sum by (phase) "
                  "(rate(pinfold_host_phase_duration_seconds_sum{$i,$h}[$r])) / scalar("
                  "sum(rate(pinfold_http_requests_total{$i,$h}[$r])))", "s", "{{phase}}", stacked=True,
                  help="On average, requests without the phase included."),
            Panel("Each phase where it happened, 95th percentile", "histogram_quantile(0.95, sum by "
                  "(le, phase) (rate(pinfold_host_phase_duration_seconds_bucket{$i,$h}[$r])))", "s",
                  "{{phase}}"),
            Panel("Until the first byte", quantiles("pinfold_upstream_first_byte_seconds", "", "$h"),
                  "s"),
        ],
        "Connections and servers": [
            Panel("Connections", {
                "{{state}}": "sum by (state) (pinfold_host_connections{$i,$h})",
                "waiting": "sum(pinfold_host_waiting{$i,$h})"}),
            Panel("Servers by reachability", "sum by (state) (pinfold_host_reachability{$i,$h})",
                  "short", "{{state}}", stacked=True),
            Panel("Changes of reachability", "sum by (state) "
                  "(increase(pinfold_host_reachability_transitions_total{$i,$h}[$r]))", "short",
                  "{{state}}"),
        ]}, hosts=True)

FLEET = Dashboard(
    "fleet", "Pinfold: fleet",
    "What gateways have in common: the cache that they share, purges and policies.", {
        "Now": [
            stat("Gateways that are there", "max(pinfold_fleet_members{$i})",
                 help="As the one sees it that sees most of them."),
            stat("Gateways with the shared cache", "sum(pinfold_cache_shared_up{$i})"),
            stat("Behind with purges", "max(pinfold_fleet_members_behind{$i})"),
            stat("Different policies", "max(pinfold_fleet_policies{$i})", help="1 if all agree."),
            stat("Found in the shared cache",
                 'sum(rate(pinfold_cache_shared_lookups_total{$i,result="hit"}[$r])) '
                 "/ sum(rate(pinfold_cache_shared_lookups_total{$i}[$r]))", "percentunit",
                 "Of what the gateways' own memory and disk do not have."),
            stat("99 % of lookups are done within", "histogram_quantile(0.99, sum by (le) "
                 "(rate(pinfold_cache_shared_lookup_times_total{$i}[$r])))", "s"),
        ],
        "Lookups": [
            Panel("Hits by level", "sum by (tier) (rate(pinfold_cache_hits_total{$i}[$r]))", "reqps",
                  "{{tier}}", stacked=True),
            Panel("Lookups by result",
                  "sum by (result) (rate(pinfold_cache_shared_lookups_total{$i}[$r]))", "reqps",
                  "{{result}}", stacked=True),
            Panel("How long lookups take", {
                share: f"histogram_quantile({quantile}, sum by (le) "
                       "(rate(pinfold_cache_shared_lookup_times_total{$i}[$r])))"
                for share, quantile in [("50 %", 0.5), ("95 %", 0.95), ("99 %", 0.99)]}, "s",
                  help="Of those that ended in time."),
            Panel("Responses fetched for all", {
                "fetched for all": "sum(rate(pinfold_cache_shared_leases_total{$i}[$r]))",
                "under way": "sum(pinfold_cache_shared_held_leases{$i})"}),
            Panel("Waits for another gateway, by result",
                  "sum by (result) (rate(pinfold_cache_shared_waits_total{$i}[$r]))", "reqps",
                  "{{result}}", stacked=True),
            Panel("Waiting for another gateway", "sum by (instance) "
                  "(pinfold_cache_shared_waiting_lookups{$i})", "short", "{{instance}}"),
        ],
        "The engine": [
            Panel("In use", "pinfold_cache_shared_up{$i}", "short", "{{instance}}",
                  help="0 while requests are served without it."),
            Panel("Circuit breaker", "sum by (state) (pinfold_cache_shared_breaker_state{$i})", "short",
                  "{{state}}", stacked=True),
            Panel("What goes wrong", "topk(10, sum by (reason) "
                  "(rate(pinfold_cache_shared_errors_total{$i}[$r])))", "reqps", "{{reason}}",
                  help="The page SharedCache explains each reason."),
            Panel("Bytes", {
                "from the engine": "sum(rate(pinfold_cache_shared_received_bytes_total{$i}[$r]))",
                "to the engine": "sum(rate(pinfold_cache_shared_sent_bytes_total{$i}[$r]))"}, "Bps"),
            Panel("Stored and not stored", {
                "stored": "sum(rate(pinfold_cache_shared_stores_total{$i}[$r]))",
                "too much was waiting": "sum(rate(pinfold_cache_shared_stores_skipped_total{$i}[$r]))"},
                  "reqps"),
            Panel("Commands that wait", "sum by (instance) (pinfold_cache_shared_queue_commands{$i})",
                  "short", "{{instance}}", help="To be sent, or for a reply."),
            Panel("Bytes that wait", "sum by (instance) (pinfold_cache_shared_queue_bytes{$i})", "bytes",
                  "{{instance}}"),
            Panel("Connections made", "sum by (instance) "
                  "(increase(pinfold_cache_shared_connections_total{$i}[$r]))", "short",
                  "{{instance}}"),
            Panel("Nodes of the cluster", "max by (state) (pinfold_cache_shared_nodes{$i})", "short",
                  "{{state}}", help="Masters. 0 without a cluster."),
            Panel("Redirections in the cluster",
                  "sum by (kind) (rate(pinfold_cache_shared_redirects_total{$i}[$r]))", "reqps",
                  "{{kind}}", help="`moved` shows that slots move, or a failover."),
        ],
        "Purges and policies": [
            Panel("Gateways", {
                "there, as {{instance}} sees it": "pinfold_fleet_members{$i}",
                "behind, as {{instance}} sees it": "pinfold_fleet_members_behind{$i}"}),
            Panel("Follows what others purge", "pinfold_cache_shared_following{$i}", "short",
                  "{{instance}}", help="0 while a gateway may serve what another one has purged."),
            Panel("Different policies", "pinfold_fleet_policies{$i}", "short", "{{instance}}"),
            Panel("Purges", "sum by (direction) (rate(pinfold_cache_shared_purges_total{$i}[$r]))",
                  "reqps", "{{direction}}"),
            Panel("Invalidations by unsafe requests",
                  "sum by (direction) (rate(pinfold_cache_shared_invalidations_total{$i}[$r]))", "reqps",
                  "{{direction}}"),
            Panel("Not told yet, and not known", {
                "URLs the engine is not told of": "sum(pinfold_cache_shared_lost_keys{$i})",
                "times all became stale":
                    "sum(increase(pinfold_cache_shared_made_stale_total{$i}[$r]))"}),
        ]})

DASHBOARDS = [OVERVIEW, PINS, CACHE, HOST, FLEET]


# Grafana's JSON


def expression(query: str) -> str:
    return (query.replace("$i", 'instance=~"$instance"').replace("$h", 'host="$host"')
            .replace("[$r]", "[$__rate_interval]"))


def target(number: int, query: str, legend: str, kind: str) -> dict:
    made: dict = {"datasource": SOURCE, "expr": expression(query), "refId": chr(ord("A") + number),
                  "legendFormat": legend or "__auto"}
    if kind != "timeseries":
        made |= {"instant": True, "range": False}
    if kind == "table":
        made["format"] = "table"
    return made


def panel(number: int, one: Panel, place: dict) -> dict:
    queries = one.queries if isinstance(one.queries, dict) else {one.legend: one.queries}
    shown: dict = {"unit": one.unit, "min": 0 if one.unit not in ("s", "d") else None}
    options: dict = {}
    if one.kind == "timeseries":
        shown["custom"] = {"fillOpacity": 20 if one.stacked else 0, "showPoints": "never",
                           "stacking": {"mode": "normal" if one.stacked else "none", "group": "A"}}
        options = {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True,
                              "calcs": []},
                   "tooltip": {"mode": "multi", "sort": "desc"}}
    elif one.kind == "stat":
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
                   "colorMode": "value", "graphMode": "none", "justifyMode": "auto",
                   "orientation": "auto", "textMode": "auto"}
    made = {
        "id": number, "type": one.kind, "title": one.title, "datasource": SOURCE, "gridPos": place,
        "targets": [target(index, query, legend, one.kind)
                    for index, (legend, query) in enumerate(queries.items())],
        "fieldConfig": {"defaults": {key: value for key, value in shown.items() if value is not None},
                        "overrides": []},
        "options": options}
    if one.kind == "table":
        made["transformations"] = [{
            "id": "organize", "options": {"excludeByName": {"Time": True}, "indexByName": {},
                                          "renameByName": {"Value": one.title}}}]
    if one.help:
        made["description"] = one.help
    return made


def variable(name: str, label: str, query: str, **options: object) -> dict:
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE,
            "query": {"query": query, "refId": "variable"}, "refresh": 2, "sort": 1, "hide": 0,
            **options}


def panels(rows: dict[str, list[Panel]]) -> list[dict]:
    made: list[dict] = []
    top = 0
    for title, row in rows.items():
        made.append({"id": len(made) + 1, "type": "row", "title": title, "collapsed": False,
                     "panels": [], "gridPos": {"h": 1, "w": 24, "x": 0, "y": top}})
        top, left, height = top + 1, 0, 0
        for one in row:
            width = WIDTHS[one.kind]
            if left + width > 24:
                top, left, height = top + height, 0, 0
            place = {"h": HEIGHTS[one.kind], "w": width, "x": left, "y": top}
            made.append(panel(len(made) + 1, one, place))
            left, height = left + width, max(height, HEIGHTS[one.kind])
        top += height
    return made


def dashboard(one: Dashboard) -> dict:
    variables = [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
         "hide": 0},
        variable("instance", "Gateway", "label_values(pinfold_ready, instance)", multi=True,
                 includeAll=True, allValue=".*",
                 current={"selected": True, "text": "All", "value": "$__all"})]
    if one.hosts:
        variables.append(variable(
            "host", "Host entry", 'label_values(pinfold_host_connections{instance=~"$instance"}, host)'))
    return {
        "uid": f"pinfold-{one.name}", "title": one.title, "description": one.help, "tags": ["pinfold"],
        "schemaVersion": 38, "editable": True, "graphTooltip": 1, "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"}, "timezone": "browser",
        "links": [{"title": "Pinfold", "type": "dashboards", "tags": ["pinfold"], "asDropdown": True,
                   "includeVars": True, "keepTime": True, "icon": "external link", "tooltip": "",
                   "targetBlank": False}],
        "templating": {"list": variables}, "panels": panels(one.rows)}


def main() -> int:
    files = {f"{one.name}.json": json.dumps(dashboard(one), indent=1) + "\n" for one in DASHBOARDS}
    if sys.argv[1:] == ["--check"]:
        present = {file.name: file.read_text() for file in FOLDER.glob("*.json")}
        return 0 if present == files else 1
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    for name, text in files.items():
        (FOLDER / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
