/// The settings that the command line can add to a file or use in place of one. The values are
/// checked like those of a file; errors name the option in place of file and line.
package struct CommandLineOverlay: Sendable, Equatable {
    /// `--listen`: replaces all forward listeners.
    package var listen: [String] = []
    /// `--reverse ADDRESS=URL`: adds a reverse listener, or replaces the file's (or the default)
    /// listener at that address.
    package var reverse: [String] = []
    /// `--admin`: replaces `admin.address`.
    package var admin: String?
    /// `--allow-destination`: adds to `access.destinations.allow`.
    package var allowDestination: [String] = []
    /// `--roots`: replaces `tls.roots`; `system`, or a file relative to the working folder.
    package var roots: [String] = []
    /// `--intercept`: host patterns whose tunnels are intercepted, with the other settings of their
    /// entries, such as pinsets, unchanged. If no authority is configured, the one that
    /// `pinfold ca init` creates is used.
    package var intercept: [String] = []
    /// `--cache-path`: replaces `cache.path`; relative to the working folder.
    package var cachePath: String?
    /// `--workers`: replaces `workers`.
    package var workers: String?

    /// No options.
    package init() {}

    /// Applies the options to a document.
    func apply(to root: inout ConfigNode, validation: ConfigurationValidation) {
        applyListeners(to: &root, validation: validation)
        if let admin {
            Self.set(["admin", "address"], to: Self.scalar(admin, "--admin"), in: &root)
        }
        if !allowDestination.isEmpty {
            let path = ["access", "destinations", "allow"]
            let added = allowDestination.map { Self.scalar($0, "--allow-destination") }
            var list =
                Self.value(path, in: root) ?? ConfigNode(origin: .builtIn, content: .null)
            list.append(added)
            Self.set(path, to: list, in: &root)
        }
        if !roots.isEmpty {
            let values = roots.map { Self.scalar($0, "--roots") }
            let list = ConfigNode(origin: .option("--roots"), content: .sequence(values))
            Self.set(["tls", "roots"], to: list, in: &root)
        }
        if !intercept.isEmpty { applyInterception(to: &root, validation: validation) }
        if let cachePath {
            Self.set(["cache", "path"], to: Self.scalar(cachePath, "--cache-path"), in: &root)
        }
        if let workers { root.set("workers", to: Self.scalar(workers, "--workers")) }
    }

    /// Applies `--listen` and `--reverse` to the listeners of the file or, if it has none, to the
    /// default one.
    private func applyListeners(to root: inout ConfigNode, validation: ConfigurationValidation) {
        guard !listen.isEmpty || !reverse.isEmpty else { return }
        var listeners: [ConfigNode]
        switch root["listeners"]?.content {
        case .sequence(let present)?: listeners = present
        case .null?, nil: listeners = [Self.defaultListener]
        // Not a list: unchanged, so that the checks report it.
        case .scalar?, .mapping?: return
        }
        if !listen.isEmpty {
            listeners.removeAll { listener in
                guard case .scalar(let kind, _)? = listener["kind"]?.content else { return true }
                return !["reverse", "socks5", "transparent"].contains(kind)
            }
            let forward = listen.map { address in
                Self.mapping("--listen", ["address": address, "kind": "forward"])
            }
            listeners.insert(contentsOf: forward, at: 0)
        }
        for option in reverse {
            guard let equals = option.firstIndex(of: "=") else {
                validation.report(
                    .option("--reverse"), "", "\(quoted(option)) has no `=`",
                    expected: "ADDRESS=URL, such as 127.0.0.1:8081=https://api.example.com")
                continue
            }
            let address = String(option[..<equals])
            let upstream = String(option[option.index(after: equals)...])
            listeners.removeAll { listener in
                // Other options' listeners stay: the checks report that the address is in use.
                if case .option = listener.origin { return false }
                guard case .scalar(address, _)? = listener["address"]?.content else { return false }
                return !address.hasSuffix(":0")
            }
            listeners.append(
                Self.mapping(
                    "--reverse", ["address": address, "kind": "reverse", "upstream": upstream]))
        }
        let origin = ConfigurationError.Origin.option(listen.isEmpty ? "--reverse" : "--listen")
        root.set("listeners", to: ConfigNode(origin: origin, content: .sequence(listeners)))
    }

    private static var defaultListener: ConfigNode {
        let listener = SnapshotReader.defaultListener
        let values = KeyValuePairs(
            dictionaryLiteral: ("name", listener.name), ("address", listener.address.description))
        return mapping(origin: .builtIn, values)
    }

    static func scalar(_ text: String, _ option: String) -> ConfigNode {
        ConfigNode(origin: .option(option), content: .scalar(text, isPlain: true))
    }

    static func mapping(
        _ option: String, _ values: KeyValuePairs<String, String>
    ) -> ConfigNode {
        mapping(origin: .option(option), values)
    }

    private static func mapping(
        origin: ConfigurationError.Origin, _ values: KeyValuePairs<String, String>
    ) -> ConfigNode {
        let entries = values.map { key, value in
            ConfigNode.Entry(
                key: key, keyOrigin: origin,
                value: ConfigNode(origin: origin, content: .scalar(value, isPlain: true)))
        }
        return ConfigNode(origin: origin, content: .mapping(entries))
    }

    private static func value(_ path: [String], in root: ConfigNode) -> ConfigNode? {
        path.reduce(Optional(root)) { $0?[$1] }
    }

    /// Replaces the value at a path, and creates the mappings that are missing on the way.
    static func set(_ path: [String], to value: ConfigNode, in node: inout ConfigNode) {
        guard let key = path.first else {
            node = value
            return
        }
        var child = node[key] ?? ConfigNode(origin: value.origin, content: .null)
        set(Array(path.dropFirst()), to: value, in: &child)
        node.set(key, to: child)
    }
}
