import Trust

/// OkHttp's `CertificatePinner.Builder`, in Kotlin or Java: calls of
/// `add("pattern", "sha256/…", …)`.
package enum OkHttpFormat {
    /// The pins of all calls of `add` in a text. Where several patterns match a host, the pins of
    /// all of them are good there, as in OkHttp.
    package static func read(_ contents: [UInt8]) throws(PinFormatError) -> [HostPins] {
        var reader = CallReader(text: Array(String(decoding: contents, as: UTF8.self)))
        var found: [HostPins] = []
        while let call = try reader.nextCall() {
            let place = "line \(call.line)"
            guard let host = call.arguments.first, call.arguments.count > 1 else {
                throw PinFormatError(
                    place, "add has \(call.arguments.count) texts",
                    expected: "a host pattern and pins, as in add(\"a.example\", \"sha256/…\")")
            }
            let pattern = try PinFormat.pattern(host, at: place)
            var pins: [String] = []
            for pin in call.arguments.dropFirst() {
                guard pin.contains("/") else {
                    throw PinFormatError(place, "\"\(pin)\" is no pin", expected: "sha256/BASE64")
                }
                pins.append(try PinFormat.pin(pin, at: place))
            }
            if let known = found.firstIndex(where: { $0.patterns == [pattern] }) {
                found[known].pins += pins.filter { !found[known].pins.contains($0) }
            } else {
                found.append(HostPins(patterns: [pattern], pins: pins))
            }
        }
        guard !found.isEmpty else {
            throw PinFormatError(
                "", "there is no call of add", expected: "add(\"a.example\", \"sha256/…\")")
        }
        return found.map { one in
            var whole = one
            for other in found where HostPins.covers(other.patterns[0], one.patterns[0]) {
                whole.pins += other.pins.filter { !whole.pins.contains($0) }
            }
            return whole
        }.inOrder
    }

    /// The builder that says the same as these hosts.
    package static func write(_ hosts: [ExportedPins]) -> String {
        var lines = ["CertificatePinner.Builder()"]
        for host in hosts {
            let pins = host.keys.map { "\"\($0.keyPinText)\"" }.joined(separator: ", ")
            for name in host.names { lines.append("    .add(\"\(name.pattern)\", \(pins))") }
        }
        return (lines + ["    .build()"]).joined(separator: "\n") + "\n"
    }
}

/// Finds calls of `add` in Kotlin or Java, past comments and other texts.
private struct CallReader {
    struct Call {
        var line: Int
        var arguments: [String]
    }

    let text: [Character]
    var position = 0
    var line = 1

    init(text: [Character]) { self.text = text }

    private func begins(_ word: String, at place: Int) -> Bool {
        text[place...].starts(with: Array(word))
    }

    private mutating func advance(_ count: Int = 1) {
        for _ in 0..<count where position < text.count {
            if text[position].isNewline { line += 1 }
            position += 1
        }
    }

    /// Goes behind a comment, if there is one here.
    private mutating func skipComment() throws(PinFormatError) -> Bool {
        if begins("//", at: position) {
            while position < text.count, !text[position].isNewline { advance() }
            return true
        }
        guard begins("/*", at: position) else { return false }
        let start = line
        while !begins("*/", at: position) {
            guard position < text.count else {
                throw PinFormatError("line \(start)", "a comment does not end", expected: "*/")
            }
            advance()
        }
        advance(2)
        return true
    }

    /// The next call of `add` with texts as arguments; nil: there is no other.
    mutating func nextCall() throws(PinFormatError) -> Call? {
        while position < text.count {
            if try skipComment() { continue }
            if text[position] == "\"" {
                _ = try literal()
                continue
            }
            let isWord = position > 0 && (text[position - 1].isLetter || text[position - 1] == "_")
            guard !isWord, begins("add", at: position) else {
                advance()
                continue
            }
            let start = line
            advance(3)
            while position < text.count, text[position].isWhitespace { advance() }
            guard position < text.count, text[position] == "(" else { continue }
            advance()
            return Call(line: start, arguments: try arguments(start))
        }
        return nil
    }

    private mutating func arguments(_ start: Int) throws(PinFormatError) -> [String] {
        var arguments: [String] = []
        while position < text.count {
            if try skipComment() { continue }
            switch text[position] {
            case ")":
                advance()
                return arguments
            case "\"": arguments.append(try literal())
            case ",": advance()
            case let character where character.isWhitespace: advance()
            case let character:
                throw PinFormatError(
                    "line \(line)", "'\(character)' is no part of a text in quotes",
                    expected: "only texts in quotes between the brackets of add")
            }
        }
        throw PinFormatError("line \(start)", "add does not end", expected: ")")
    }

    private mutating func literal() throws(PinFormatError) -> String {
        let start = line
        advance()
        var content = ""
        while position < text.count, !text[position].isNewline {
            if text[position] == "\"" {
                advance()
                return content
            }
            if text[position] == "\\" { advance() }
            guard position < text.count else { break }
            content.append(text[position])
            advance()
        }
        throw PinFormatError("line \(start)", "a text does not end on its line", expected: "\"")
    }
}
