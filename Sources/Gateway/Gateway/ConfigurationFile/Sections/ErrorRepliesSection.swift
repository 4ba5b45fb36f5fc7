import PinfoldConfiguration

/// `errorReplies`.
extension ErrorRepliesConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .choice("format", \.format),
            ConfigurationKey(
                "page", \.page, byDefault: "the gateway's own",
                reading: { _, field in
                    let page: ErrorPage? = field.page()
                    return page
                },
                text: { $0.map { YAMLText.quoted($0.path) } }),
        ])
    }
}

extension SnapshotReader {
    /// Reads `errorReplies`, and warns of a page that nobody ever gets.
    func errorReplies(_ field: Field?) -> ErrorRepliesConfiguration {
        let replies = read(
            field, by: ErrorRepliesConfiguration.table, over: ErrorRepliesConfiguration()
        ).values
        switch replies.format {
        case .negotiate, .html: break
        case .text, .json:
            guard replies.page != nil else { break }
            field?.key("page")?.warn(
                "has no effect with format: \(replies.format.rawValue); write format: negotiate or "
                    + "format: html")
        }
        return replies
    }
}

extension Field {
    /// A page in a file.
    func page<Value>() -> PageTemplate<Value>? {
        guard let path = filePath(), let content = contents(ofFile: path) else { return nil }
        let maximum = PageTemplate<Value>.maximumBytes
        guard content.count <= maximum else {
            fail(
                "\(quoted(path: path)) has \(content.count) bytes",
                expected: "at most \(maximum) bytes")
            return nil
        }
        do {
            return try PageTemplate(path: path, content: content)
        } catch {
            fail(
                "\(quoted(path: path)), line \(error.line): \(error.text)",
                expected: "a page in HTML")
            return nil
        }
    }
}
