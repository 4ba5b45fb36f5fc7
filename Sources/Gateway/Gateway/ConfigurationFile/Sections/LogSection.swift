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

/// `log.access`, if it is a mapping.
extension AccessLogConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .required(
                "path", \.path, expected: "the path of the access log",
                reading: { $1.outputPath() }, text: YAMLText.quoted),
            .choice("format", \.format),
        ])
    }
}

extension SnapshotReader {
    /// The access log, or `nil` if there is none.
    fileprivate func accessLog(_ field: Field) -> AccessLogConfiguration? {
        if case .scalar("none", _) = field.node.content { return nil }
        let (log, section) = read(
            field, by: AccessLogConfiguration.table, over: AccessLogConfiguration())
        guard !log.path.isEmpty else { return nil }
        if validation.environment.looksAtPaths, log.path != AccessLogConfiguration.standardOutput,
            let problem = PathAccess.problemAppending(to: log.path)
        {
            section?["path"]?.fail(problem, expected: "a file in a writable directory")
        }
        return log
    }
}

extension Field {
    /// The path of a file, or standard output.
    fileprivate func outputPath() -> String? {
        let standardOutput = AccessLogConfiguration.standardOutput
        if case .scalar(standardOutput, _) = node.content { return standardOutput }
        return filePath()
    }
}
