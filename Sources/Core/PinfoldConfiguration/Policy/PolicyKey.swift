/// The keys that a policy may have, each with the reason why what it says cannot widen what the
/// local file allows. There are no others: this is the table that policies are read by, and that
/// the page about them shows.
package enum PolicyKey: String, Sendable, CaseIterable {
    case hostsMatch = "hosts.match"
    case hostsName = "hosts.name"
    case hostsUpgrade = "hosts.upgrade"
    case hostsTunnel = "hosts.tunnel"
    case hostsTLS13Tunnel = "hosts.tls13Tunnel"
    case hostsLiveTunnels = "hosts.liveTunnels"
    case hostsClearText = "hosts.clearText"
    case hostsSwitchProtocols = "hosts.switchProtocols"
    case hostsHTTP2 = "hosts.http2"
    case hostsPinsets = "hosts.pinsets"
    case hostsTLSMinimum = "hosts.tls.minimum"
    case hostsTLSProfile = "hosts.tls.profile"
    case hostsTLSStapling = "hosts.tls.ocspStapling"
    case hostsCacheStore = "hosts.cache.store"
    case pinsetMode = "pinsets.NAME.mode"
    case pinsetPins = "pinsets.NAME.pins"
    case pinsetEnforce = "pinsets.NAME.enforce"
    case pinsetExpires = "pinsets.NAME.expires"
    case pinsetAfterExpiry = "pinsets.NAME.afterExpiry"
    case pinsetReportTo = "pinsets.NAME.reportTo"
    case accessClients = "access.clients"
    case accessHosts = "access.hosts"
    case accessConnectPorts = "access.connectPorts"
    case accessDestinationsDeny = "access.destinations.deny"
    case accessDefault = "access.default"
    case ruleName = "access.rules.name"
    case ruleListeners = "access.rules.listeners"
    case ruleClients = "access.rules.clients"
    case ruleUsers = "access.rules.users"
    case ruleGroups = "access.rules.groups"
    case ruleHosts = "access.rules.hosts"
    case ruleLists = "access.rules.lists"
    case rulePorts = "access.rules.ports"
    case ruleMethods = "access.rules.methods"
    case rulePaths = "access.rules.paths"
    case ruleTimes = "access.rules.times"
    case ruleAction = "access.rules.action"
    case ruleStatus = "access.rules.status"
    case ruleTunnel = "access.rules.tunnel"
    case ruleRate = "access.rules.rate"

    /// The key's path in an entry, a pinset or a rule: `["tls", "minimum"]`.
    package var pathInside: [String] {
        let parts = rawValue.split(separator: ".").map(String.init)
        let isDeep = parts[0] == "pinsets" || parts.starts(with: ["access", "rules"])
        return Array(parts.dropFirst(isDeep ? 2 : 1))
    }

    /// Why it cannot widen anything: what it is checked for, or what it can never do. One sentence
    /// without a full stop.
    package var reason: String {
        switch self {
        case .hostsMatch:
            "local entries come first; `**` only if the local file has none; with `access.hosts: "
                + "listed` in the local file it lists nothing; a host that the local file pins at "
                + "any port stays refused where no local entry applies; refused if it applies to a "
                + "local parent, one of several `upstreams`, or the engine of `cache.shared` "
                + "(`rediss`)"
        case .hostsName:
            "a label; it, or the first pattern without it, is not that of a local entry, `none` or "
                + "`default`"
        case .hostsUpgrade:
            "`https`, or what applied before; refused if ports are named by local rules, their "
                + "hosts, local entries or `access.destinations.allow`, because it leads from port "
                + "80 to 443"
        case .hostsTunnel:
            "`refuse`, or what applied before; `auto` in place of `pass`; `inspect` where tunnels "
                + "were passed and nothing is intercepted; a host that the policy pins is not "
                + "passed; no tunnel is intercepted because of it"
        case .hostsTLS13Tunnel:
            "`refuse`, or what applied before; `probe` where tunnels were passed unseen and no "
                + "local rule has any inspected"
        case .hostsLiveTunnels: "what applied before, or stricter: `keep`, `auto`, `close`"
        case .hostsClearText:
            "what applied before, or stricter: `allow`, `auto`, `refuse`; a host that the policy "
                + "pins is not reached in clear text"
        case .hostsSwitchProtocols: "what applied before, or stricter: `allow`, `auto`, `refuse`"
        case .hostsHTTP2: "what applied before, or `off` in place of `auto`"
        case .hostsPinsets:
            "added to those that applied before, all of which must pass; a local one only if it "
                + "compares keys, with no roots of its own and no invalid certificates; no tunnel "
                + "is intercepted because of them"
        case .hostsTLSMinimum: "what applied before, or higher"
        case .hostsTLSProfile:
            "what applied before, or stricter: `lenient`, none, `strict`, `pedantic`"
        case .hostsTLSStapling: "`required`, or what applied before"
        case .hostsCacheStore: "`false`, or what applied before"
        case .pinsetMode:
            "`publicKey` or `none`: in both the chain must be valid; `certificate` would make a "
                + "root of a pin"
        case .pinsetPins: "digests written out: no files"
        case .pinsetEnforce: "a pinset of the policy only adds to what a server must prove"
        case .pinsetExpires: "likewise"
        case .pinsetAfterExpiry: "likewise"
        case .pinsetReportTo: "only where a local pinset reports to"
        case .accessClients: "only networks within the local ones"
        case .accessHosts: "`listed`, or what the local file says"
        case .accessConnectPorts: "only ports among the local ones"
        case .accessDestinationsDeny: "added to the local ones; denying takes precedence"
        case .accessDefault: "`deny`, or what the local file says"
        case .ruleName: "a name; not that of a local rule"
        case .ruleListeners, .ruleClients, .ruleUsers, .ruleGroups, .ruleHosts, .rulePorts,
            .ruleMethods, .rulePaths, .ruleTimes:
            "a condition; local rules come first"
        case .ruleLists: "a condition; lists of the local file, by their names"
        case .ruleAction:
            "`deny` and `report`; `allow` only if the local file says `access.default: allow`, so "
                + "that it allows nothing else than that"
        case .ruleStatus: "the status of a refusal"
        case .ruleTunnel: "`refuse` only"
        case .ruleRate: "a limit on what is allowed anyway"
        }
    }
}
