import Pinning

extension ConfigurationSnapshot {
    /// The whole configuration as YAML, with every default filled in and every path absolute: a
    /// valid configuration that loads to an equal snapshot. Secrets (the administrative token) are
    /// named by their file, never shown.
    package func effectiveYAML() -> String {
        var yaml = YAMLText()
        switch workers {
        case .auto(let cores): yaml.line(0, "workers: auto  # \(cores) online")
        case .fixed(let count): yaml.line(0, "workers: \(count)")
        }
        yaml.line(0, "listeners:")
        for listener in listeners { write(listener, to: &yaml) }
        yaml.line(0, "admin:")
        yaml.line(1, "address: \(yaml.quoted(admin.address.description))")
        if let token = admin.token { yaml.line(1, "tokenFile: \(yaml.quoted(token.path))") }
        yaml.line(1, "metrics: \(admin.metrics.rawValue)")
        yaml.line(1, "hosts: \(yaml.list(admin.hosts.map(\.description)))")
        writeAccess(to: &yaml)
        yaml.line(0, hosts.entries.isEmpty ? "hosts: []" : "hosts:")
        for entry in hosts.entries { write(entry, to: &yaml) }
        yaml.line(0, pinsets.isEmpty ? "pinsets: {}" : "pinsets:")
        for entry in pinsets { write(entry, to: &yaml) }
        yaml.line(0, "tls: \(flow(tls, yaml))")
        writeEngine(to: &yaml)
        return yaml.text
    }

    private func write(_ listener: ListenerConfiguration, to yaml: inout YAMLText) {
        yaml.line(1, "- name: \(yaml.quoted(listener.name))")
        yaml.line(2, "address: \(yaml.quoted(listener.address.description))")
        switch listener.kind {
        case .forward:
            yaml.line(2, "kind: forward")
        case .reverse(let upstream):
            let forwarding = listener.forwarding
            yaml.line(2, "kind: reverse")
            yaml.line(2, "upstream: \(yaml.quoted(upstream.url))")
            yaml.line(2, "forwarded: \(forwarding.mode.rawValue)")
            yaml.line(2, "host: \(forwarding.keepsHost ? "keep" : "rewrite")")
            let proxies = forwarding.trustedProxies.map(\.description)
            yaml.line(2, "trustedProxies: \(yaml.list(proxies))")
        }
    }

    private func writeAccess(to yaml: inout YAMLText) {
        yaml.line(0, "access:")
        yaml.line(1, "clients: \(yaml.list(access.clients.map(\.description)))")
        switch access.connectPorts {
        case .any: yaml.line(1, "connectPorts: any")
        case .ports(let ports):
            yaml.line(1, "connectPorts: [\(ports.map(\.description).joined(separator: ", "))]")
        }
        yaml.line(1, "destinations:")
        for (key, list) in [("allow", access.allow), ("deny", access.deny)] {
            let rules = list.networks.map(\.description) + list.patterns.map(\.description)
            yaml.line(2, "\(key): \(yaml.list(rules))")
        }
    }

    private func write(_ entry: HostEntry, to yaml: inout YAMLText) {
        yaml.line(1, "- match: \(yaml.list(entry.match.map(\.description)))")
        if let name = entry.name { yaml.line(2, "name: \(yaml.quoted(name))") }
        yaml.line(2, "upgrade: \(entry.upgradesToHTTPS ? "https" : "none")")
        let pinned = entry.pinsets.isEmpty ? "" : "  # refuse: the entry has pinsets"
        let tunnelNote = entry.tunnel == .auto ? pinned : ""
        yaml.line(2, "tunnel: \(entry.tunnel.rawValue)\(tunnelNote)")
        let clearTextNote = entry.clearText == .auto ? pinned : ""
        yaml.line(2, "clearText: \(entry.clearText.rawValue)\(clearTextNote)")
        yaml.line(2, "pinsets: \(yaml.list(entry.pinsets.map { pinsets[$0].pinset.name }))")
        yaml.line(2, "tls: \(flow(entry.tls, yaml))")
        write(entry.timeouts, to: &yaml)
        let key = yaml.list(entry.cacheKeyFields)
        yaml.line(2, "cache: { store: \(entry.cacheStores), key: \(key) }")
        if let probe = entry.probe {
            let interval = Quantity.text(milliseconds: probe.intervalMilliseconds)
            yaml.line(2, "probe: { interval: \(interval), path: \(yaml.quoted(probe.path)) }")
        }
    }

    private func write(_ timeouts: HostTimeouts, to yaml: inout YAMLText) {
        let times: [(String, Int64?)] = [
            ("connect", timeouts.connectMilliseconds),
            ("firstByte", timeouts.firstByteMilliseconds),
            ("body", timeouts.bodyMilliseconds), ("tunnel", timeouts.tunnelMilliseconds),
            ("eventStream", timeouts.eventStreamMilliseconds),
        ]
        let set = times.compactMap { key, time in
            time.map { "\(key): \(Quantity.text(milliseconds: $0))" }
        }
        guard !set.isEmpty else { return }
        yaml.line(2, "timeouts: { \(set.joined(separator: ", ")) }")
    }

    private func write(_ entry: PinsetEntry, to yaml: inout YAMLText) {
        yaml.line(1, "\(yaml.quoted(entry.pinset.name)):")
        yaml.line(2, "mode: \(entry.pinset.mode.rawValue)")
        yaml.line(2, "pins: \(yaml.list(entry.pinTexts))")
        yaml.line(2, "allowInvalidCertificates: \(entry.pinset.allowInvalidCertificates)")
        yaml.line(2, "validatesDomainName: \(entry.pinset.validatesDomainName)")
        yaml.line(2, "anchors: \(yaml.list(entry.anchorPaths))")
    }

    private func flow(_ tls: UpstreamTLS, _ yaml: YAMLText) -> String {
        let roots = tls.roots.map { root in
            switch root {
            case .system: "system"
            case .file(let path, _): yaml.quoted(path)
            }
        }
        let list = roots.joined(separator: ", ")
        return "{ minimum: \(yaml.quoted(tls.minimum.rawValue)), roots: [\(list)] }"
    }

    private func writeEngine(to yaml: inout YAMLText) {
        yaml.line(0, "cache:")
        yaml.line(1, "enabled: \(cache.isEnabled)")
        yaml.line(1, "memory: \(Quantity.text(bytes: cache.memoryBytes))")
        yaml.line(1, "disk: \(Quantity.text(bytes: cache.diskBytes))")
        yaml.line(1, "entries: \(cache.diskEntries)")
        yaml.line(1, "variants: \(cache.variantsPerURL)")
        yaml.line(1, "path: \(yaml.quoted(cache.path))")
        yaml.line(1, "maximumObject: \(Quantity.text(bytes: cache.maximumObjectBytes))")
        yaml.line(1, "bypassFields: \(yaml.list(cache.bypassFields))")
        yaml.line(0, "resolver:")
        switch resolver.servers {
        case .system: yaml.line(1, "servers: system")
        case .list(let servers):
            yaml.line(1, "servers: \(yaml.list(servers.map(\.description)))")
        }
        yaml.duration(1, "minimumTTL", resolver.minimumTTLSeconds * 1_000)
        yaml.duration(1, "maximumTTL", resolver.maximumTTLSeconds * 1_000)
        yaml.line(0, "activity:")
        yaml.duration(1, "activationDelay", activity.activationDelayMilliseconds)
        yaml.duration(1, "completionDelay", activity.completionDelayMilliseconds)
        yaml.line(0, "limits:")
        yaml.line(1, "connections: \(limits.connections)")
        yaml.line(1, "headBytes: \(Quantity.text(bytes: limits.headBytes))")
        yaml.line(1, "fields: \(limits.fields)")
        yaml.line(1, "upstreamPerHost: \(limits.upstreamPerHost)")
        yaml.line(1, "pending: \(limits.pending)")
        yaml.line(1, "bufferBytes: \(Quantity.text(bytes: limits.bufferBytes))")
        let client = limits.perClient
        yaml.line(
            1,
            "perClient: { connections: \(client.connections), exchanges: \(client.exchanges) }")
        yaml.line(0, "timeouts:")
        yaml.duration(1, "head", timeouts.headMilliseconds)
        yaml.duration(1, "idle", timeouts.idleMilliseconds)
        yaml.duration(1, "connect", timeouts.connectMilliseconds)
        yaml.duration(1, "firstByte", timeouts.firstByteMilliseconds)
        yaml.duration(1, "body", timeouts.bodyMilliseconds)
        yaml.duration(1, "tunnel", timeouts.tunnelMilliseconds)
        yaml.duration(1, "eventStream", timeouts.eventStreamMilliseconds)
        yaml.duration(1, "collapse", timeouts.collapseMilliseconds)
        yaml.duration(1, "drainDelay", timeouts.drainDelayMilliseconds)
        yaml.duration(1, "grace", timeouts.graceMilliseconds)
        yaml.line(0, "log:")
        yaml.line(1, "level: \(log.level.rawValue)")
        if let access = log.access {
            let path = yaml.quoted(access.path)
            yaml.line(1, "access: { path: \(path), format: \(access.format.rawValue) }")
        } else {
            yaml.line(1, "access: none")
        }
    }
}

/// YAML text in the making. Every text that is not one of our own words is quoted.
private struct YAMLText {
    var text = ""

    /// Adds a line; a level is two spaces.
    mutating func line(_ level: Int, _ content: String) {
        text += String(repeating: "  ", count: level) + content + "\n"
    }

    mutating func duration(_ level: Int, _ key: String, _ milliseconds: Int64) {
        line(level, "\(key): \(Quantity.text(milliseconds: milliseconds))")
    }

    /// A flow list of quoted texts.
    func list(_ texts: [String]) -> String {
        "[\(texts.map(quoted).joined(separator: ", "))]"
    }

    /// A double-quoted scalar (YAML 1.2 §7.3.1); characters that YAML or a terminal would not take
    /// as they are become escapes.
    func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate,
                .unassigned:
                let digits = String(scalar.value, radix: 16)
                result += "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
            default:
                if scalar == "\"" || scalar == "\\" { result += "\\" }
                result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
