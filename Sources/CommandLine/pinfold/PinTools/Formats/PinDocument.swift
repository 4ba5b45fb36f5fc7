import Documents

/// Parses other programs' XML and property lists, with the errors of the pin formats.
enum PinDocument {
    /// Limits far above what a file of pins needs.
    private static let limits = DocumentLimits(depth: 64, values: 100_000)

    /// Parses XML. Returns the root element.
    static func xml(_ contents: [UInt8]) throws(PinFormatError) -> XMLTree.Element {
        do {
            return try XMLTree(contents, limits: limits).root
        } catch {
            throw PinFormatError(error, expected: "well-formed XML")
        }
    }

    /// Parses a property list, XML or binary.
    static func propertyList(_ contents: [UInt8]) throws(PinFormatError) -> DocumentValue {
        do {
            return try PropertyListReader.value(of: contents, limits: limits)
        } catch {
            let isText = error.location?.line != nil
            throw PinFormatError(
                error,
                expected: isText ? "a property list" : "a binary property list (bplist00)")
        }
    }
}

extension PinFormatError {
    fileprivate init(_ error: DocumentError, expected: String) {
        let place = error.location.map { $0.line.map { "line \($0)" } ?? "byte \($0.offset)" }
        let wanted =
            switch error.reason {
            case .entity: "a document without entities"
            case .encoding: "UTF-8 or UTF-16"
            case .duplicateKey: "each key once"
            default: expected
            }
        self.init(place ?? "", error.reason.text, expected: wanted)
    }
}

extension XMLTree.Element {
    /// The element's line, for errors.
    var place: String { "line \(line ?? 1)" }

    /// The text without leading and trailing white space.
    var trimmedText: String {
        let isSpace: (Character) -> Bool = { $0.isWhitespace }
        let start = text.drop(while: isSpace)
        return String(start.reversed().drop(while: isSpace).reversed())
    }
}
