import HTTPCore
import PinfoldConfiguration

/// `cache.purge`.
extension PurgeConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            ConfigurationKey(
                "clients", \.clients, byDefault: "all that have the token",
                reading: { reader, field in
                    field.boundedList(of: "networks")?.compactMap { reader.clientNetwork($0) }
                },
                text: { $0.map { YAMLText.list($0.map(\.clientDescription)) } }),
            ConfigurationKey(
                "tokenFile", \.token, byDefault: "none", reading: { $0.bearerToken($1) },
                text: { $0.map { YAMLText.quoted($0.path) } }),
        ])
    }
}

extension CacheConfiguration {
    /// `purge`, which is `nil` unless it is written.
    static var purgeKey: ConfigurationKey<Self> {
        var key = ConfigurationKey<Self>(
            "purge",
            read: { reader, field, cache in
                guard let field else { return }
                let (purge, section) = reader.read(
                    field, by: PurgeConfiguration.table, over: PurgeConfiguration())
                cache.purge = purge
                // What cannot be read has been reported.
                guard let section, section["tokenFile"] == nil, purge.clients?.isEmpty ?? true,
                    section["clients"].map({ $0.isEmptyList }) ?? true
                else { return }
                field.fail(
                    "says nobody who may purge",
                    expected: "clients with at least one network, or tokenFile, or both")
            },
            text: { $0.purge.flatMap(PurgeConfiguration.table.flow) })
        key.described = { _ in
            PurgeConfiguration.table.described(PurgeConfiguration()).map { $0.within("purge") }
        }
        return key
    }
}

extension Field {
    /// Whether it is `[]`.
    fileprivate var isEmptyList: Bool {
        if case .sequence(let members) = node.content { members.isEmpty } else { false }
    }
}

extension SnapshotReader {
    /// The token in a file.
    func bearerToken(_ field: Field) -> BearerToken? {
        guard let path = field.filePath(), let content = field.contents(ofFile: path) else {
            return nil
        }
        do throws(BearerTokenError) {
            return try BearerToken(path: path, content: content)
        } catch {
            field.fail(error.text(ofFile: quoted(path: path)), expected: BearerTokenError.expected)
            return nil
        }
    }
}
