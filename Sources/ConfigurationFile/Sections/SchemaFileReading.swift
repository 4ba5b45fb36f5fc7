import Configuration
import Documents

/// Why a file is no JSON Schema; the text is for people.
struct SchemaProblem: Error, Equatable {
    var text: String
}

extension SchemaFile {
    static let expected = "a JSON Schema: an object, true or false"
    /// Bytes of a schema.
    private static let maximumBytes = 1 << 20

    /// The schema that a file's content is.
    init(checking text: [UInt8], path: String) throws(SchemaProblem) {
        do throws(DocumentError) {
            try JSONValidator.validate(text, limits: DocumentLimits(bytes: Self.maximumBytes))
        } catch {
            throw SchemaProblem(text: "\(quoted(path)) is no JSON: \(error)")
        }
        let first = text.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        guard let first, "{tf".utf8.contains(first) else {
            throw SchemaProblem(text: "\(quoted(path)) is no JSON Schema")
        }
        self.init(path: path, text: text)
    }
}
