#include "CLivePage.h"

// The compiler puts the files into the program: there is no step of the build for them, and no
// folder beside the program at run time. A file that is added to `page` is added here, too; a test
// compares them.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char base_css[] = {
#embed "page/base.css"
};
static const unsigned char cache_js[] = {
#embed "page/cache.js"
};
static const unsigned char chain_js[] = {
#embed "page/chain.js"
};
static const unsigned char charts_js[] = {
#embed "page/charts.js"
};
static const unsigned char configuration_js[] = {
#embed "page/configuration.js"
};
static const unsigned char dom_js[] = {
#embed "page/dom.js"
};
static const unsigned char figures_js[] = {
#embed "page/figures.js"
};
static const unsigned char filter_js[] = {
#embed "page/filter.js"
};
static const unsigned char fleet_js[] = {
#embed "page/fleet.js"
};
static const unsigned char flow_js[] = {
#embed "page/flow.js"
};
static const unsigned char flowlist_js[] = {
#embed "page/flowlist.js"
};
static const unsigned char flows_js[] = {
#embed "page/flows.js"
};
static const unsigned char format_js[] = {
#embed "page/format.js"
};
static const unsigned char hosts_js[] = {
#embed "page/hosts.js"
};
static const unsigned char icon_svg[] = {
#embed "page/icon.svg"
};
static const unsigned char index_html[] = {
#embed "page/index.html"
};
static const unsigned char keyboard_js[] = {
#embed "page/keyboard.js"
};
static const unsigned char live_js[] = {
#embed "page/live.js"
};
static const unsigned char main_js[] = {
#embed "page/main.js"
};
static const unsigned char overview_js[] = {
#embed "page/overview.js"
};
static const unsigned char panels_css[] = {
#embed "page/panels.css"
};
static const unsigned char pins_js[] = {
#embed "page/pins.js"
};
static const unsigned char poll_js[] = {
#embed "page/poll.js"
};
static const unsigned char reachability_js[] = {
#embed "page/reachability.js"
};
static const unsigned char router_js[] = {
#embed "page/router.js"
};
static const unsigned char session_js[] = {
#embed "page/session.js"
};
static const unsigned char setup_js[] = {
#embed "page/setup.js"
};
static const unsigned char stream_js[] = {
#embed "page/stream.js"
};
static const unsigned char table_js[] = {
#embed "page/table.js"
};
static const unsigned char text_js[] = {
#embed "page/text.js"
};
static const unsigned char token_js[] = {
#embed "page/token.js"
};
static const unsigned char transfers_js[] = {
#embed "page/transfers.js"
};
static const unsigned char workers_js[] = {
#embed "page/workers.js"
};

static const struct live_page_file files[] = {
    {"base.css", base_css, sizeof base_css},
    {"cache.js", cache_js, sizeof cache_js},
    {"chain.js", chain_js, sizeof chain_js},
    {"charts.js", charts_js, sizeof charts_js},
    {"configuration.js", configuration_js, sizeof configuration_js},
    {"dom.js", dom_js, sizeof dom_js},
    {"figures.js", figures_js, sizeof figures_js},
    {"filter.js", filter_js, sizeof filter_js},
    {"fleet.js", fleet_js, sizeof fleet_js},
    {"flow.js", flow_js, sizeof flow_js},
    {"flowlist.js", flowlist_js, sizeof flowlist_js},
    {"flows.js", flows_js, sizeof flows_js},
    {"format.js", format_js, sizeof format_js},
    {"hosts.js", hosts_js, sizeof hosts_js},
    {"icon.svg", icon_svg, sizeof icon_svg},
    {"index.html", index_html, sizeof index_html},
    {"keyboard.js", keyboard_js, sizeof keyboard_js},
    {"live.js", live_js, sizeof live_js},
    {"main.js", main_js, sizeof main_js},
    {"overview.js", overview_js, sizeof overview_js},
    {"panels.css", panels_css, sizeof panels_css},
    {"pins.js", pins_js, sizeof pins_js},
    {"poll.js", poll_js, sizeof poll_js},
    {"reachability.js", reachability_js, sizeof reachability_js},
    {"router.js", router_js, sizeof router_js},
    {"session.js", session_js, sizeof session_js},
    {"setup.js", setup_js, sizeof setup_js},
    {"stream.js", stream_js, sizeof stream_js},
    {"table.js", table_js, sizeof table_js},
    {"text.js", text_js, sizeof text_js},
    {"token.js", token_js, sizeof token_js},
    {"transfers.js", transfers_js, sizeof transfers_js},
    {"workers.js", workers_js, sizeof workers_js},
};

const struct live_page_file *live_page_file(size_t index) {
    return index < sizeof files / sizeof *files ? &files[index] : NULL;
}
