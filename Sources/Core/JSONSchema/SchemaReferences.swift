import Documents
import HTTPCore

/// A location in a schema's file.
struct SchemaLocation {
    var value: DocumentValue
    /// A JSON Pointer from the file's root (RFC 6901).
    var pointer: String
    /// The base URI of references there, without fragment.
    var base: String
}

/// Resolves `$ref` within the file: nothing is ever fetched.
struct SchemaReferences {
    private let identifier: String
    /// What the identifiers in the file refer to, by URI.
    private var locations: [String: SchemaLocation] = [:]

    init(_ root: DocumentValue, draft: SchemaDraft) {
        identifier = draft.identifier
        let root = SchemaLocation(value: root, pointer: "", base: "")
        locations[""] = root
        collect(from: root)
    }

    /// Keywords whose values are not schemas.
    private static let data: Set<String> = ["enum", "const", "default", "examples"]

    private mutating func collect(from root: SchemaLocation) {
        var pending = [root]
        while let location = pending.popLast() {
            switch location.value {
            case .array(let values):
                for (index, value) in values.enumerated() {
                    pending.append(location.descending(to: value, step: "\(index)"))
                }
            case .dictionary(let dictionary):
                let inner = register(location)
                for member in dictionary.members where !Self.data.contains(member.key) {
                    pending.append(inner.descending(to: member.value, step: member.key))
                }
            default: break
            }
        }
    }

    /// The location with its own base URI.
    private mutating func register(_ location: SchemaLocation) -> SchemaLocation {
        guard let uri = identified(location) else { return location }
        let inner = entering(location)
        if locations[uri] == nil { locations[uri] = inner }
        return inner
    }

    /// The URI that identifies a location.
    private func identified(_ location: SchemaLocation) -> String? {
        guard case .string(let text)? = location.value[identifier], location.value["$ref"] == nil
        else {
            return nil
        }
        guard var uri = location.resolve(text) else { return nil }
        if uri.fragment == "" { uri.fragment = nil }
        return uri.description
    }

    /// The location, with the base URI that its own identifier sets.
    func entering(_ location: SchemaLocation) -> SchemaLocation {
        guard let uri = identified(location) else { return location }
        var inner = location
        inner.base = String(uri.prefix { $0 != "#" })
        return inner
    }

    /// Resolves a reference.
    ///
    /// - Parameter location: the location of the reference.
    func find(_ reference: String, from location: SchemaLocation) throws(JSONSchemaError)
        -> SchemaLocation
    {
        var uri = location.resolve(reference)
        let text = uri?.description ?? ""
        let fragment = (uri?.fragment ?? "").removingPercentEscapes
        uri?.fragment = nil
        if !fragment.isEmpty, !fragment.hasPrefix("/") {
            if let found = locations[text] { return found }
        } else if let start = uri.flatMap({ locations[$0.description] }) {
            if let found = descend(from: start, fragment) { return found }
        } else {
            throw JSONSchemaError(
                "$ref refers to \(reference.quoted), which is not in this file; nothing is "
                    + "fetched",
                at: "#\(location.pointer)")
        }
        throw JSONSchemaError(
            "$ref refers to \(reference.quoted), which does not exist", at: "#\(location.pointer)")
    }

    private func descend(from start: SchemaLocation, _ pointer: String) -> SchemaLocation? {
        var location = start
        for step in pointer.utf8.split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false
        )
        .dropFirst() {
            let name = String(decoding: step, as: UTF8.self).removingPointerEscapes
            switch location.value {
            case .array(let values):
                guard let index = Int(name), values.indices.contains(index) else { return nil }
                location = location.descending(to: values[index], step: name)
            case .dictionary(let members):
                guard let value = members[name] else { return nil }
                location = entering(location.descending(to: value, step: name))
            default: return nil
            }
        }
        return location
    }
}

extension SchemaLocation {
    /// Resolves a reference; `nil` if it is not one.
    func resolve(_ reference: String) -> URIReference? {
        guard let reference = URIReference(reference), let base = URIReference(base) else {
            return nil
        }
        return reference.resolved(against: base)
    }

    func descending(to value: DocumentValue, step: String) -> SchemaLocation {
        var escaped = ""
        for scalar in step.unicodeScalars {
            switch scalar {
            case "~": escaped += "~0"
            case "/": escaped += "~1"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return SchemaLocation(value: value, pointer: "\(pointer)/\(escaped)", base: base)
    }
}

extension String {
    /// For errors.
    var quoted: String { utf8.count > 100 ? "\"\(prefix(100))…\"" : "\"\(self)\"" }

    /// RFC 6901 §4.
    fileprivate var removingPointerEscapes: String {
        var result: [UInt8] = []
        var isEscape = false
        for byte in utf8 {
            if isEscape {
                result.append(byte == UInt8(ascii: "1") ? UInt8(ascii: "/") : UInt8(ascii: "~"))
                isEscape = false
            } else if byte == UInt8(ascii: "~") {
                isEscape = true
            } else {
                result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    fileprivate var removingPercentEscapes: String {
        String(decoding: PercentCoding.decodeEscapes(utf8), as: UTF8.self)
    }
}
