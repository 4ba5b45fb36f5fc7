import Trust

/// OkHttp's `CertificatePinner.Builder`, in Kotlin or Java: calls to
/// `add("pattern", "sha256/…", …)`.
package enum OkHttpFormat {
    /// Reads the pins of all calls to `add` in a text. As in OkHttp, if several patterns match a
    /// host, the pins of all of them are accepted.
    package static func read(_ contents: [UInt8]) throws(PinFormatError) -> [HostPins] {
        var reader = CallReader(text: Array(String(decoding: contents, as: UTF8.self)))
        var found: [HostPins] = []
        while let call = try reader.nextCall() {
            let place = "line \(call.line)"
            guard let host = call.arguments.first, call.arguments.count > 1 else {
                throw PinFormatError(
                    place, "add has too few string arguments",
                    expected: "a host pattern and pins, as in add(\"a.example\", \"sha256/…\")")
            }
            let pattern = try PinFormat.pattern(host, at: place)
            var pins: [String] = []
            for pin in call.arguments.dropFirst() {
                guard pin.contains("/") else {
                    throw PinFormatError(
                        place, "\"\(pin)\" is not a valid pin", expected: "sha256/BASE64")
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
                "", "no calls to add found", expected: "add(\"a.example\", \"sha256/…\")")
        }
        return found.map { one in
            var whole = one
            for other in found where HostPins.covers(other.patterns[0], one.patterns[0]) {
                whole.pins += other.pins.filter { !whole.pins.contains($0) }
            }
            return whole
        }.inOrder
    }

    /// Writes the builder for these hosts.
    package static func write(_ hosts: [ExportedPins]) -> String {
        var lines = ["CertificatePinner.Builder()"]
        for host in hosts {
            let pins = host.keys.map { "\"\($0.keyPinText)\"" }.joined(separator: ", ")
            for name in host.names { lines.append("    .add(\"\(name.pattern)\", \(pins))") }
        }
        return (lines + ["    .build()"]).joined(separator: "\n") + "\n"
    }
}

/// Finds calls to `add` in Kotlin or Java, ignoring comments and other string literals.
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

    /// Skips a comment, if there is one at the current position.
    private mutating func skipComment() throws(PinFormatError) -> Bool {
        if begins("//", at: position) {
            while position < text.count, !text[position].isNewline { advance() }
            return true
        }
        guard begins("/*", at: position) else { return false }
        let start = line
        while !begins("*/", at: position) {
            guard position < text.count else {
                throw PinFormatError("line \(start)", "unterminated comment", expected: "*/")
            }
            advance()
        }
        advance(2)
        return true
    }

    /// The next call to `add` with string literals as arguments, or `nil` if there are no more.
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
                    "line \(line)", "unexpected '\(character)' in the arguments of add",
                    expected: "string literals only")
            }
        }
        throw PinFormatError("line \(start)", "unterminated call to add", expected: ")")
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
        throw PinFormatError("line \(start)", "unterminated string literal", expected: "\"")
    }
}
