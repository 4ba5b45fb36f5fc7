import ArgumentParser
import HTTPCore
import HTTPTypes
import PinfoldClient

/// Options for the content to send.
protocol ContentSource {
    /// The content, and the header fields that describe it.
    func content() throws -> (RequestContent?, HTTPFields)
}

/// The options for the content to send: at most one kind.
struct ContentOptions: ParsableArguments, ContentSource {
    @Option(
        help: ArgumentHelp(
            "Send this text, the contents of a file (@FILE), or standard input (@-).",
            valueName: "text|@file"))
    var data: String?

    @OptionGroup var formData: FormDataOptions

    @Option(
        help: ArgumentHelp(
            "Send JSON: a text or a file (@FILE). Sets Content-Type and Accept.",
            valueName: "text|@file"))
    var json: String?

    @Option(
        name: .customLong("form"),
        help: ArgumentHelp(
            "Send a form field (application/x-www-form-urlencoded); repeatable.",
            valueName: "name=value"))
    var form: [String] = []

    @Option(
        name: .customLong("multipart"),
        help: ArgumentHelp(
            "Send a form field or a file (multipart/form-data); repeatable.",
            valueName: "name=value|name=@file"))
    var multipart: [String] = []

    func validate() throws {
        let kinds = [
            data != nil, !formData.data.isEmpty, json != nil, !form.isEmpty, !multipart.isEmpty,
        ]
        guard kinds.filter({ $0 }).count <= 1 else {
            throw ValidationError(
                "only one of --data, -d, --json, --form and --multipart is allowed")
        }
        for field in form + multipart where !field.contains("=") {
            throw ValidationError("\(field): expected NAME=VALUE")
        }
    }

    func content() throws -> (RequestContent?, HTTPFields) {
        if let data { return (try Self.content(data), [:]) }
        if !formData.data.isEmpty { return try formData.content() }
        if let json {
            return (
                try Self.content(json),
                [.contentType: "application/json", .accept: "application/json"]
            )
        }
        if !form.isEmpty {
            let text = form.map { field in
                let (name, value) = Self.sides(of: field)
                return "\(Self.encoded(name))=\(Self.encoded(value))"
            }.joined(separator: "&")
            return (.text(text), [.contentType: "application/x-www-form-urlencoded"])
        }
        guard !multipart.isEmpty else { return (nil, [:]) }
        var parts = MultipartForm()
        for field in multipart {
            let (name, value) = Self.sides(of: field)
            guard value.hasPrefix("@") else {
                parts.append(value, name: name)
                continue
            }
            do throws(MultipartError) {
                try parts.append(file: String(value.dropFirst()), name: name)
            } catch {
                throw ClientCommandError(.content, "--multipart \(field): \(error)")
            }
        }
        return (.multipart(parts.body()), [.contentType: parts.contentType])
    }

    private static func content(_ text: String) throws -> RequestContent {
        guard text.hasPrefix("@") else { return .text(text) }
        let path = String(text.dropFirst())
        guard path == "-" else { return try .file(path) }
        return .bytes(try CommandContent.standardInput())
    }

    private static func sides(of field: String) -> (name: String, value: String) {
        let sides = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        return (String(sides[0]), sides.count > 1 ? String(sides[1]) : "")
    }

    /// Encodes text as application/x-www-form-urlencoded (WHATWG URL section 5.2).
    private static func encoded(_ text: String) -> String {
        let escaped = PercentCoding.encode(text.utf8) { byte in
            ASCII.isLetter(byte) || ASCII.isDigit(byte) || "*-._ ".utf8.contains(byte)
        }
        return String(decoding: escaped.map { $0 == 0x20 ? UInt8(ascii: "+") : $0 }, as: UTF8.self)
    }
}
