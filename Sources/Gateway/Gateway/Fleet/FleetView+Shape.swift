import Documents

// The view as the API shows it.
extension FleetView {
    private static let offer = ObjectShape<FleetReport.Offer>(
        "The policy that came by way of the engine last.",
        [
            .number("serial", "Its serial.") { Int($0.serial) },
            .text("hash", "The SHA-256 of what is signed, in hex.") { $0.hash },
            .number("percent", "The share of the gateways that is to take it.") { $0.percent },
            .optionalText("refusal", "Why the gateway refused it.") { $0.refusal },
        ])

    private static let policy = ObjectShape<FleetReport.Policy>(
        "The gateway's policy; absent if none is configured.",
        [
            .optionalNumber("serial", "The serial of the one in force.") {
                $0.serial.map { Int($0) }
            },
            .optionalText("hash", "The SHA-256 of what is signed of it, in hex.") {
                $0.serial == nil ? nil : $0.hash
            },
            .optionalTime("expires", "When it expires.") { $0.expires },
            .optionalObject("offered", offer) { $0.offered },
            .texts("alarms", "What is wrong with it.") { $0.alarms },
        ])

    private static let cache = ObjectShape<FleetReport.Cache>(
        "What lookups have found since the start.",
        [
            .number("lookups", "Lookups.") { Int($0.lookups) },
            .number("memoryHits", "Found in memory.") { Int($0.memoryHits) },
            .number("diskHits", "Found on the disk.") { Int($0.diskHits) },
            .number("sharedHits", "Found in the engine.") { Int($0.sharedHits) },
        ])

    private static let reachability = ObjectShape<FleetReport.Reachability>(
        "The servers of all host entries, as the gateway sees them.",
        [
            .number("entries", "Host entries.") { $0.entries },
            .number("reachable", "Servers that are reachable.") { $0.reachable },
            .number("notReachable", "Servers that are not reachable.") { $0.notReachable },
            .number("unknown", "Servers of which nothing is known.") { $0.unknown },
        ])

    private static let gateway = ObjectShape<Gateway>(
        "A gateway.",
        [
            .text("name", "Its name.") { $0.name },
            .text("instance", "What distinguishes it from others of that name.") { $0.instance },
            .number("age_ms", "Milliseconds since it last said that it is there.") {
                Int(clamping: $0.age)
            },
            .flag("purged", "Whether it has carried out all purges that are known here.") {
                $0.isCurrent
            },
            .flag("away", "Whether it has not said so for a while.") { $0.isAway },
            .number("share", "From which share on it takes a policy, in hundredths.") { $0.share },
            .optionalText("problem", "Why nothing else is known of it.") {
                if case .failure(let error) = $0.report { "its report \(error.text)" } else { nil }
            },
            .optionalText("version", "The version of its program.") { $0.known?.version },
            .optionalTime("started", "When its process started.") { $0.known?.started },
            .optionalTime("reported", "When it said this.") { $0.known?.time },
            .optionalNumber("generation", "The number of its configuration.") {
                $0.known.map { Int($0.generation) }
            },
            .optionalObject("policy", policy) { $0.known?.policy },
            .optionalObject("cache", cache) { $0.known?.cache },
            .optionalObject("hosts", reachability) { $0.known?.hosts },
        ])

    private static let agreement = ObjectShape<Agreement>(
        "Gateways that have the same policy.",
        [
            .optionalNumber("serial", "Its serial; absent for those that have none.") {
                $0.serial.map { Int($0) }
            },
            .text("hash", "The SHA-256 of what is signed, in hex.") { $0.hash },
            .texts("gateways", "Who has it.") { $0.gateways },
        ])

    private static let sight = ObjectShape<Sight>(
        "A host entry, as one gateway sees it.",
        [
            .text("gateway", "The gateway's name.") { $0.gateway },
            .number("reachable", "Servers that are reachable.") { $0.host.reachable },
            .number("notReachable", "Servers that are not reachable.") { $0.host.notReachable },
            .number("unknown", "Servers of which nothing is known.") { $0.host.unknown },
            .number("requests", "Exchanges lately.") { Int(clamping: $0.host.requests) },
            .number("failures", "Those that were refused, failed or cut off.") {
                Int(clamping: $0.host.failures)
            },
            .texts("trouble", "Why it deserves a look, as in /api/v1/hosts.") {
                $0.host.troubles
            },
        ])

    private static let host = ObjectShape<Host>(
        "A host entry.",
        [
            .text("entry", "Its label.") { $0.name },
            .list("gateways", sight, "How each gateway that mentions it sees it.") { $0.seen },
        ])

    private static let pin = ObjectShape<UnseenPin>(
        "A pin that no gateway has seen in a server's chain for a week.",
        [
            .text("pinset", "The pinset.") { $0.pinset },
            .text("pin", "The pin.") { $0.pin },
            .time("since", "Since when.") { $0.since * 1000 },
            .flag("hasMatched", "Whether it was seen before that.") { $0.hasMatched },
            .number("gateways", "How many gateways watch it.") { $0.gateways },
        ])

    static let shape = ObjectShape<FleetView>(
        "The gateways that share a cache.",
        [
            .text("name", "The name of the gateway that says this.") { $0.name },
            .flag("current", "Whether the engine has answered; if not, this is from before.") {
                $0.isCurrent
            },
            .list("gateways", gateway, "The gateways, by name.") { $0.gateways },
            .flag("agree", "Whether all have the same policy.") { $0.agrees },
            .list("policies", agreement, "Who has which policy.") { $0.policies },
            .object("cache", cache) { $0.cache },
            .list(
                "hosts", host,
                "Host entries, those first in which most gateways see something wrong; at most 50."
            ) { $0.hosts },
            .list("unseenPins", pin, "Pins that nobody has seen for a week; at most 200.") {
                $0.unseenPins
            },
        ])
}
