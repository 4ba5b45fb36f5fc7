import HTTPCore
import PinfoldConfiguration

/// `response` of an entry of `hosts`.
extension ResponseRules {
    static var table: KeyTable<Self> {
        let defaults = Self()
        return KeyTable(keys: [
            .steps("headers", \.headers),
            ConfigurationKey(
                "statusCodes", \.statusCodes, byDefault: "all",
                reading: { $1.statusCodes() }, text: { $0.map(statusTexts) }),
            ConfigurationKey(
                "contentTypes", \.contentTypes, byDefault: "all",
                reading: { $1.mediaTypes() }, text: { $0.map(YAMLText.list) }),
            ConfigurationKey(
                "validate", \.validate, byDefault: "none",
                reading: { $1.choice(of: ValidatedFormat.allCases) }, text: { $0?.rawValue }),
            ConfigurationKey(
                "schema", \.schema, byDefault: "none", reading: { $1.schemaFile() },
                text: { $0.map { YAMLText.quoted($0.path) } }),
            bodyKey,
            ConfigurationKey("image", \.image, table: ImageRules.table, empty: ImageRules()),
            // Printed only if they have an effect or differ from the default.
            .bytes("maximum", \.maximumBytes, in: contentSizes).printed {
                $0.looksAtContent || $0.maximumBytes != defaults.maximumBytes
            },
            .choice("larger", \.larger).printed {
                $0.looksAtContent || $0.larger != defaults.larger
            },
            .choice("noTransform", \.noTransform).printed {
                $0.changesContent || $0.noTransform != defaults.noTransform
            },
        ])
    }

    /// Whether the rules neither check nor change anything.
    var isEmpty: Bool {
        var empty = Self()
        // This belongs to the key `cache`.
        empty.cacheForm = cacheForm
        return self == empty
    }

    /// Whether content is buffered until it is complete.
    var looksAtContent: Bool { validate != nil || changesContent }

    /// Whether content may be changed.
    var changesContent: Bool { body != nil || image != nil }

    /// The key that determines the media type of content, or `nil` if none does.
    var translation: String? {
        if body != nil { return "response.body" }
        return image.map { _ in "response.image" }
    }

    static func statusTexts(_ codes: [ClosedRange<UInt16>]) -> String {
        YAMLText.list(
            codes.map { range in
                range.count == 1
                    ? "\(range.lowerBound)" : "\(range.lowerBound)-\(range.upperBound)"
            })
    }
}

/// `response.body` as written: the translation, and the keys that may be in either `response` or
/// `response.body`.
struct WrittenResponseBody {
    var rules = ResponseBodyRules(from: .json, to: .json)
    var maximumBytes: Int?
    var larger: LargerBodyMode?
    var noTransform: NoTransformMode?

    static var table: KeyTable<Self> {
        let formats: [BodyFormat] = [.json, .plist, .xml]
        func beside<Value>(
            _ name: String, _ place: WritableKeyPath<Self, Value?>,
            reading: @escaping (Field) -> Value?
        ) -> ConfigurationKey<Self> {
            ConfigurationKey(
                name, place, byDefault: "from response", reading: { reading($1) },
                text: { _ in nil })
        }
        return KeyTable(keys: [
            .format("from", \.rules.from, of: formats),
            .format("to", \.rules.to, of: formats),
            .boolean("removesKeysWithNullValues", \.rules.removesKeysWithNullValues),
            ConfigurationKey(
                "propertyList", \.rules.writesBinaryPropertyLists,
                byDefault: PropertyListForm.xml.rawValue,
                reading: { $1.choice(PropertyListForm.self).map { $0 == .binary } },
                text: {
                    ($0 ? PropertyListForm.binary : PropertyListForm.xml).rawValue
                }
            ).printed { $0.rules.to == .plist },
            beside("maximum", \.maximumBytes) { $0.bytes(in: contentSizes) },
            beside("larger", \.larger) { $0.choice() },
            beside("noTransform", \.noTransform) { $0.choice() },
        ])
    }

    private enum PropertyListForm: String, CaseIterable {
        case xml
        case binary
    }
}

extension ResponseRules {
    fileprivate static var bodyKey: ConfigurationKey<Self> {
        let table = WrittenResponseBody.table
        var key = ConfigurationKey<Self>(
            "body",
            readSection: { reader, section, rules in
                guard let section else { return }
                let (written, body) = reader.read(
                    section["body"], by: table, over: WrittenResponseBody())
                guard let body else { return }
                rules.body = written.rules
                rules.maximumBytes = written.maximumBytes ?? rules.maximumBytes
                rules.larger = written.larger ?? rules.larger
                rules.noTransform = written.noTransform ?? rules.noTransform
                for key in ["maximum", "larger", "noTransform"] where section[key] != nil {
                    body[key]?.fail(
                        "means the same as response.\(key) of this entry",
                        expected: "only one of the two")
                }
            },
            text: { $0.body.flatMap { table.flow(WrittenResponseBody(rules: $0)) } })
        key.described = { _ in
            table.described(WrittenResponseBody()).map { $0.within("body") }
        }
        return key
    }
}

extension Field {
    fileprivate func schemaFile() -> SchemaFile? {
        guard let path = filePath(), let contents = contents(ofFile: path) else { return nil }
        do throws(SchemaFileError) {
            return try SchemaFile(checking: contents, path: path)
        } catch {
            fail(error.text, expected: SchemaFile.expected)
            return nil
        }
    }

    /// A nonempty list of distinct elements.
    fileprivate func distinct<Value: Equatable>(
        _ what: String, _ reading: (Field) -> Value?
    ) -> [Value]? {
        guard let elements = list(of: what) else { return nil }
        guard 1...100 ~= elements.count else {
            fail("has \(elements.count) entries", expected: "1 to 100 \(what)")
            return nil
        }
        var found: [Value] = []
        for element in elements {
            guard let value = reading(element) else { continue }
            if found.contains(value) {
                element.fail("is listed twice", expected: "each once")
            }
            found.append(value)
        }
        return found
    }

    func statusCodes() -> [ClosedRange<UInt16>]? {
        distinct("status codes") { element in
            element.parsed(
                expected: "a status from 200 to 599, or a range such as \"200-299\""
            ) { text in
                let ends = text.split(separator: "-", omittingEmptySubsequences: false)
                let codes = ends.compactMap { end -> UInt16? in
                    guard end.utf8.count == 3, let code = UInt16(end) else { return nil }
                    return (200...599).contains(code) ? code : nil
                }
                guard codes.count == ends.count, let first = codes.first, let last = codes.last,
                    codes.count <= 2, first <= last
                else { return nil }
                return first...last
            }
        }
    }

    fileprivate func mediaTypes() -> [String]? {
        distinct("media types") { element in
            element.parsed(
                expected: "a media type without parameters, such as application/json or text/*"
            ) { text in
                let parts = text.split(separator: "/", omittingEmptySubsequences: false)
                    .map(String.init)
                guard text.utf8.count <= 255, parts.count == 2, isToken(parts[0]),
                    isToken(parts[1]), !parts[0].utf8.contains(UInt8(ascii: "*")),
                    parts[1] == "*" || !parts[1].utf8.contains(UInt8(ascii: "*"))
                else { return nil }
                return text.lowercasedASCII
            }
        }
    }
}
