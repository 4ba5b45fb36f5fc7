import PinfoldConfiguration

/// `log`.
extension LogConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .choice("level", \.level), .choice("format", \.format), accessKey,
        ])
    }

    /// `access`: `none`, or a mapping.
    private static var accessKey: ConfigurationKey<Self> {
        let table = AccessLogConfiguration.table
        var key = ConfigurationKey<Self>(
            "access", \.access, reading: { $0.accessLog($1) },
            text: { $0.flatMap(table.flow) ?? "none" })
        let ofNone = key.described
        key.described = { log in
            ofNone(log)
                + table.described(AccessLogConfiguration()).map { $0.within("access") }
        }
        return key
    }
}
