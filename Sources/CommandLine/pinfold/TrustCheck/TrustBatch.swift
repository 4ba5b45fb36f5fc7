import HTTPCore
import Trust

/// Answers queries given as lines of JSON. A line that is not a valid query gets an error as
/// its answer; the following lines are still answered.
package struct TrustBatch {
    /// The longest line, in bytes.
    package static let lineBytes = 16 << 20

    private var checker = TrustChecker()
    private var rest: [UInt8] = []
    private var lineNumber = 0
    /// Whether the current line is too long, so that the rest of it is skipped.
    private var isSkipping = false
    /// The number of lines that were not valid queries.
    package private(set) var errorCount = 0

    package init() {}

    /// Takes the next bytes of the input, in chunks of any size. Returns the answers to the lines
    /// that are now complete, one line of JSON each.
    package mutating func feed(_ bytes: ArraySlice<UInt8>) -> String {
        var results = ""
        var bytes = bytes
        while let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
            take(bytes[..<end])
            results += endLine()
            bytes = bytes[(end + 1)...]
        }
        take(bytes)
        return results
    }

    /// The answer to the last line, if it does not end with a line feed.
    package mutating func finish() -> String { rest.isEmpty && !isSkipping ? "" : endLine() }

    private mutating func take(_ bytes: ArraySlice<UInt8>) {
        guard !isSkipping else { return }
        rest += bytes
        guard rest.count > Self.lineBytes else { return }
        isSkipping = true
        rest.removeAll()
    }

    private mutating func endLine() -> String {
        lineNumber += 1
        defer {
            rest.removeAll(keepingCapacity: true)
            isSkipping = false
        }
        if isSkipping {
            return errorLine("longer than \(Self.lineBytes) bytes", id: "null")
        }
        guard !rest.allSatisfy({ [0x20, 0x09, 0x0D].contains($0) }) else { return "" }
        let value: JSONValue
        do throws(JSONSyntaxError) {
            value = try JSONReader.read(rest[...])
        } catch {
            return errorLine("not JSON: \(error.text), at byte \(error.position)", id: "null")
        }
        let id = TrustQuery.identifier(of: value)
        do throws(TrustQueryError) {
            let query = try TrustQuery(json: value)
            return try checker.check(query).line(id: id)
        } catch {
            return errorLine(error.description, id: id)
        }
    }

    private mutating func errorLine(_ text: String, id: String) -> String {
        errorCount += 1
        return TrustResult(TrustQueryError("line \(lineNumber): \(text)")).line(id: id)
    }
}

extension TrustQuery {
    /// The names of a query's members.
    static let members = [
        "id", "chain", "intermediates", "roots", "host", "mode", "pins",
        "allowInvalidCertificates", "validatesDomainName", "at", "profile",
    ]

    /// The `id` of a query as JSON; `null` if it has none.
    static func identifier(of value: JSONValue) -> String {
        guard case .object(let members) = value else { return "null" }
        return members.first { $0.name == "id" }?.value.text ?? "null"
    }

    /// Reads a query. Members that are missing or null have their defaults: no additional
    /// certificates, the system's trust anchors, no host, mode `publicKey` with pins and `none`
    /// without, a valid chain and a matching name required, the current time, and profile
    /// `strict`.
    init(json value: JSONValue) throws(TrustQueryError) {
        guard case .object(let members) = value else {
            throw TrustQueryError("\(value.name); expected an object")
        }
        var pinset = Pinset(name: "")
        var mode: PinningMode?
        for (name, value) in members where value != .null {
            switch name {
            case "id": break
            case "chain": chain = try Self.texts(value, name).map { Material($0) }
            case "intermediates":
                intermediates = try Self.texts(value, name).map { Material($0) }
            case "roots":
                roots = try Self.texts(value, name).map { $0 == "system" ? .system : Material($0) }
            case "host": host = try Self.text(value, name)
            case "mode": mode = try Self.choice(value, name)
            case "pins":
                for text in try Self.texts(value, name) {
                    pinset.pins += try Self.pins(text)
                }
            case "allowInvalidCertificates":
                pinset.allowInvalidCertificates = try Self.flag(value, name)
            case "validatesDomainName": pinset.validatesDomainName = try Self.flag(value, name)
            case "at": time = try Self.time(try Self.text(value, name), name)
            case "profile": profile = ChosenProfile(try Self.choice(value, name))
            default:
                throw TrustQueryError(
                    "unknown member \(JSONText.quoted(name)); expected one of "
                        + Self.members.joined(separator: ", "))
            }
        }
        pinset.mode = mode ?? (pinset.pins.isEmpty ? .none : .publicKey)
        pinsets = [pinset]
    }

    /// Parses a time in the format of RFC 3339, to seconds since 1970.
    package static func time(
        _ text: String, _ name: String
    ) throws(TrustQueryError) -> Int64 {
        guard let seconds = CivilDate.secondsSince1970(rfc3339: text.utf8) else {
            throw TrustQueryError(
                "\(name): \(JSONText.quoted(text)) is not a valid time; expected RFC 3339 format, "
                    + "such as 2027-06-01T00:00:00Z")
        }
        return seconds
    }

    private static func text(
        _ value: JSONValue, _ name: String
    ) throws(TrustQueryError) -> String {
        guard case .string(let text) = value else {
            throw TrustQueryError("\(name) is \(value.name); expected a string")
        }
        return text
    }

    /// A string, or a list of strings.
    private static func texts(
        _ value: JSONValue, _ name: String
    ) throws(TrustQueryError) -> [String] {
        switch value {
        case .string(let text): return [text]
        case .array(let values):
            var texts: [String] = []
            for (index, value) in values.enumerated() {
                texts.append(try text(value, "\(name)[\(index)]"))
            }
            return texts
        default:
            throw TrustQueryError(
                "\(name) is \(value.name); expected a string or a list of strings")
        }
    }

    private static func flag(
        _ value: JSONValue, _ name: String
    ) throws(TrustQueryError) -> Bool {
        guard case .boolean(let flag) = value else {
            throw TrustQueryError("\(name) is \(value.name); expected true or false")
        }
        return flag
    }

    private static func choice<Value: RawRepresentable & CaseIterable>(
        _ value: JSONValue, _ name: String
    ) throws(TrustQueryError) -> Value where Value.RawValue == String {
        let text = try text(value, name)
        guard let choice = Value(rawValue: text) else {
            let words = Value.allCases.map(\.rawValue).joined(separator: ", ")
            throw TrustQueryError(
                "\(name): \(JSONText.quoted(text)) is unknown; expected one of \(words)")
        }
        return choice
    }
}
