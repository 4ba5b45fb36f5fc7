import HTTPCore
import PinfoldConfiguration

/// `admin`.
extension AdminConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            ConfigurationKey(
                "address",
                read: { reader, field, admin in
                    guard let address = field.flatMap({ reader.writtenAddress($0) }) else { return }
                    (admin.address, admin.passed) = (address.endpoint, address.passed)
                },
                text: { YAMLText.quoted($0.addressText) }),
            ConfigurationKey(
                "tokenFile", \.token, byDefault: "none", reading: { $0.adminToken($1) },
                text: { $0.map { YAMLText.quoted($0.path) } }),
            ConfigurationKey(
                "metrics", byDefault: "open on loopback, else token",
                read: { _, field, admin in
                    let byDefault: Metrics = admin.isLoopback ? .open : .token
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
}

extension SnapshotReader {
    /// The administrative listener.
    func admin(_ field: Field?) -> AdminConfiguration {
        let (admin, section) = read(field, by: AdminConfiguration.table, over: AdminConfiguration())
        guard admin.metrics == .token, section?["tokenFile"] == nil else { return admin }
        if admin.isLoopback {
            section?["metrics"]?.fail(
                "requires a token, but admin.tokenFile is missing", expected: "admin.tokenFile")
        } else {
            section?["address"]?.fail(
                "\(admin.addressText) is not a loopback address and admin.tokenFile is missing",
                expected: "admin.tokenFile, admin.metrics: open, or a loopback address")
        }
        return admin
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
