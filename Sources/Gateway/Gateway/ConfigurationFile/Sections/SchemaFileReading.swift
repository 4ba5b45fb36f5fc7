import JSONSchema
import PinfoldConfiguration

/// Why a file is no JSON Schema; the text is for people.
struct SchemaProblem: Error, Equatable {
    var text: String
}

extension SchemaFile {
    static let expected = "a JSON Schema of draft-04, draft-06 or draft-07"

    /// The schema that a file's content is.
    init(checking text: [UInt8], path: String) throws(SchemaProblem) {
        do throws(JSONSchemaError) {
            _ = try JSONSchema(text)
        } catch {
            throw SchemaProblem(
                text: "\(quoted(path)) is no JSON Schema: \(Self.onOneLine("\(error)"))")
        }
        self.init(path: path, text: text)
    }

    /// The first 300 characters of a text with names of the file in it, control characters escaped.
    private static func onOneLine(_ text: String) -> String {
        text.unicodeScalars.prefix(300).reduce(into: "") { line, scalar in
            let isControl = scalar.properties.generalCategory == .control
            line += isControl ? scalar.escaped(asASCII: true) : String(scalar)
        }
    }
}
