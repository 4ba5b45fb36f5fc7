import JSONSchema
import PinfoldConfiguration

/// Why a file is not a JSON Schema, with a message for the user.
struct SchemaFileError: Error, Equatable {
    var text: String
}

extension SchemaFile {
    static let expected = "a JSON Schema of draft-04, draft-06 or draft-07"

    /// Checks that a file's content is a JSON Schema.
    init(checking text: [UInt8], path: String) throws(SchemaFileError) {
        do throws(JSONSchemaError) {
            _ = try JSONSchema(text)
        } catch {
            throw SchemaFileError(
                text: "\(quoted(path: path)) is not a JSON Schema: \(Self.onOneLine("\(error)"))")
        }
        self.init(path: path, text: text)
    }

    /// The first 300 characters of a text, with control characters escaped, since the text may
    /// quote names from the file.
    private static func onOneLine(_ text: String) -> String {
        text.unicodeScalars.prefix(300).reduce(into: "") { line, scalar in
            let isControl = scalar.properties.generalCategory == .control
            line += isControl ? scalar.escaped(asASCII: true) : String(scalar)
        }
    }
}
