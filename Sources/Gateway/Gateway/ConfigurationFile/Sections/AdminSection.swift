import Files
import HTTPCore
import PinfoldConfiguration

/// `admin`.
extension AdminConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            ConfigurationKey(
                "address",
                read: { reader, field, admin in
                    guard let address = field.flatMap({ reader.adminAddress($0) }) else { return }
                    (admin.address, admin.passed) = address
                },
                text: { YAMLText.quoted($0.addressText) }),
            ConfigurationKey(
                "mode", byDefault: "\"0600\"",
                read: { _, field, admin in
                    guard let field, let mode = field.socketMode() else { return }
                    guard case .unix(var socket) = admin.address else {
                        return field.fail(
                            "applies only to a Unix socket",
                            expected: "address: unix:PATH, or no mode")
                    }
                    socket.mode = mode
                    admin.address = .unix(socket)
                },
                text: { $0.address.unix.map { YAMLText.quoted(Field.modeText($0.mode)) } }),
            tlsKey,
            ConfigurationKey(
                "tokenFile", \.token, byDefault: "none", reading: { $0.adminToken($1) },
                text: { $0.map { YAMLText.quoted($0.path) } }),
            ConfigurationKey(
                "metrics",
                byDefault: "open on loopback, on a Unix socket and with clientRoots, else token",
                read: { _, field, admin in
                    let byDefault: Metrics = admin.admitsOnlyKnown ? .open : .token
                    admin.metrics = field?.choice() ?? byDefault
                },
                text: { $0.metrics.rawValue }),
            ConfigurationKey(
                "hosts", \.hosts,
                reading: { reader, field in
                    field.boundedList(of: "host patterns")?.compactMap { reader.hostPattern($0) }
                },
                text: { YAMLText.list($0.map(\.description)) }),
        ])
    }

    /// `tls`, which is `nil` unless it is written. Where there are issuers, each client must show a
    /// certificate of theirs.
    private static var tlsKey: ConfigurationKey<Self> {
        let table = KeyTable(
            keys: ListenerTLS.table.keys.filter { $0.name != "clientCertificates" })
        var key = ConfigurationKey<Self>(
            "tls",
            read: { reader, field, admin in
                admin.tls = field.flatMap { reader.listenerTLS($0, by: table) }
                guard admin.tls != nil, admin.address.unix != nil else { return }
                field?.fail(
                    "does not apply to a Unix socket", expected: "an address and a port, or no tls")
            },
            text: { $0.tls.flatMap(table.flow) })
        key.described = { _ in table.described(ListenerTLS()).map { $0.within("tls") } }
        return key
    }

    /// Whether all its clients are on this machine, or show certificates.
    fileprivate var admitsOnlyKnown: Bool {
        isLoopback || !(tls?.clientRoots.isEmpty ?? true)
    }
}

extension Field {
    /// The permissions of a Unix socket.
    fileprivate func socketMode() -> UInt32? {
        parsed(expected: "three octal digits after a 0, such as \"0660\"") { text in
            guard text.utf8.count == 4, text.hasPrefix("0") else { return nil }
            return UInt32(text, radix: 8)
        }
    }

    fileprivate static func modeText(_ mode: UInt32) -> String {
        let digits = String(mode, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}

extension SnapshotReader {
    /// The administrative listener.
    func admin(_ field: Field?) -> AdminConfiguration {
        let (admin, section) = read(field, by: AdminConfiguration.table, over: AdminConfiguration())
        if admin.token != nil, !admin.isLoopback, admin.tls == nil {
            section?["tokenFile"]?.warn(
                "\(admin.addressText) is not a loopback address and has no TLS: the token, and "
                    + "what it protects, can be read on the network; add admin.tls")
        }
        guard admin.metrics == .token, section?["tokenFile"] == nil else { return admin }
        if admin.admitsOnlyKnown {
            section?["metrics"]?.fail(
                "requires a token, but admin.tokenFile is missing", expected: "admin.tokenFile")
        } else {
            section?["address"]?.fail(
                "\(admin.addressText) is not a loopback address and admin.tokenFile is missing",
                expected: "admin.tokenFile, admin.tls with clientRoots, admin.metrics: open, or a "
                    + "loopback address")
        }
        return admin
    }

    /// An address to listen on, or the path of a Unix socket; relative paths are relative to the
    /// file's folder.
    func adminAddress(
        _ field: Field
    ) -> (address: ListenAddress, passed: PassedAddress?)? {
        guard case .scalar(let text, _) = field.node.content, text.hasPrefix(UnixSocketPath.scheme)
        else { return writtenAddress(field).map { (.network($0.endpoint), $0.passed) } }
        let written = String(text.dropFirst(UnixSocketPath.scheme.count))
        guard !written.isEmpty, !written.utf8.contains(0), !written.hasSuffix("/"),
            let path = validation.path(written, writtenIn: field.node.origin)
        else {
            field.fail("\(quoted(text)) names no file", expected: "unix: and a path")
            return nil
        }
        guard path.utf8.count <= UnixSocketPath.maximumBytes else {
            field.fail(
                "\(quoted(path: path)) is too long for a Unix socket",
                expected: "a path of at most \(UnixSocketPath.maximumBytes) bytes")
            return nil
        }
        if validation.environment.looksAtPaths {
            if let problem = PathAccess.problemCreating(in: Folder.of(path)) { field.warn(problem) }
        }
        return (.unix(UnixSocketPath(path: path)), nil)
    }

    fileprivate func adminToken(_ field: Field) -> AdminToken? {
        guard let path = field.filePath(), let content = field.contents(ofFile: path) else {
            return nil
        }
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0D ~= byte }
        let bytes = Array(
            content.drop(while: isSpace).reversed().drop(while: isSpace).reversed())
        // RFC 6750 §2.1: a bearer token consists of visible ASCII characters.
        guard !bytes.isEmpty, bytes.count <= 4096, bytes.allSatisfy({ 0x21...0x7E ~= $0 }) else {
            field.fail(
                bytes.isEmpty
                    ? "\(quoted(path: path)) is empty" : "\(quoted(path: path)) has no valid token",
                expected: "a file with one token of visible ASCII characters")
            return nil
        }
        return AdminToken(path: path, bytes: bytes)
    }
}
