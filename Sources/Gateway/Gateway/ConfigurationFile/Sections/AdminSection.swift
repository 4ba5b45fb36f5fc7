import HTTPCore
import PinfoldConfiguration

/// `admin`.
extension AdminConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            ConfigurationKey(
                "address",
                read: { reader, field, admin in
                    guard let address = field.flatMap({ reader.listenAddress($0) }) else { return }
                    (admin.address, admin.passed) = address
                },
                text: { YAMLText.quoted($0.addressText) }),
            ConfigurationKey(
                "mode", byDefault: "\"0600\"",
                read: { _, field, admin in
                    guard let field, let mode = field.socketMode() else { return }
                    guard case .unix(var socket) = admin.address else {
                        guard admin.passed == nil else {
                            return field.fail(
                                "does not apply to sockets from the service manager",
                                expected: "SocketMode= in the socket unit, or address: unix:PATH")
                        }
                        return field.fail(
                            "applies only to a Unix socket",
                            expected: "address: unix:PATH, or no mode")
                    }
                    socket.mode = mode
                    admin.address = .unix(socket)
                },
                text: {
                    $0.address.unix.map { YAMLText.quoted(UnixSocketPath.modeText($0.mode)) }
                }),
            tlsKey,
            ConfigurationKey(
                "tokenFile", \.token, byDefault: "none", reading: { $0.bearerToken($1) },
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
            ConfigurationKey(
                "recordSecrets", \.recordSecrets, reading: { $1.boolean() }, text: { "\($0)" }),
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
                guard admin.tls != nil, !admin.unixPaths.isEmpty else { return }
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
}
