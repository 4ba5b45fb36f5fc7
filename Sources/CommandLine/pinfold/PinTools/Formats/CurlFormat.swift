import HTTPCore
import Trust

/// curl's `--pinnedpubkey`: command lines with a URL, or the pin strings alone.
package enum CurlFormat {
    /// Reads the pins of a text. Each line is a curl command, or pins as `sha256//…;sha256//…`.
    /// Empty lines and lines that begin with `#` are ignored; `\` at the end continues a line.
    ///
    /// - Parameter hosts: The host patterns for pins without a URL.
    package static func read(
        _ contents: [UInt8], hosts: [String]
    ) throws(PinFormatError) -> [HostPins] {
        var found: [HostPins] = []
        var pending = ""
        var begin = 1
        let lines = String(decoding: contents, as: UTF8.self)
            .split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            if pending.isEmpty { begin = index + 1 }
            if line.hasSuffix("\\"), index + 1 < lines.count {
                pending += line.dropLast() + " "
                continue
            }
            let whole = pending + line
            pending = ""
            let words = try words(whole, at: "line \(begin)")
            guard let first = words.first, !first.hasPrefix("#") else { continue }
            try read(words, hosts, at: "line \(begin)", into: &found)
        }
        guard !found.isEmpty else {
            throw PinFormatError("", "no pins found", expected: "--pinnedpubkey sha256//BASE64")
        }
        return found.inOrder
    }

    private static func read(
        _ words: [String], _ hosts: [String], at place: String, into found: inout [HostPins]
    ) throws(PinFormatError) {
        var value: String?
        var patterns: [String] = []
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--pinnedpubkey" {
                guard let next = rest.popFirst() else {
                    throw PinFormatError(
                        place, "--pinnedpubkey has no value", expected: "sha256//…")
                }
                value = next
            } else if word.hasPrefix("--pinnedpubkey=") {
                value = String(word.dropFirst("--pinnedpubkey=".count))
            } else if word.hasPrefix("https://") {
                guard let peer = PeerAddress(word) else {
                    throw PinFormatError(
                        place, "\"\(word)\" is not a valid URL", expected: "https://host/")
                }
                patterns.append(try PinFormat.pattern(peer.host, at: place))
            } else if words.count == 1 {
                value = word
            }
        }
        guard let value else {
            throw PinFormatError(
                place, "--pinnedpubkey is missing", expected: "--pinnedpubkey sha256//BASE64")
        }
        if patterns.isEmpty {
            for host in hosts { patterns.append(try PinFormat.pattern(host, at: "--host")) }
        }
        guard !patterns.isEmpty else {
            throw PinFormatError(place, "there is no URL with the host", expected: "--host")
        }
        var pins: [String] = []
        for one in value.split(separator: ";", omittingEmptySubsequences: false) {
            let text = String(one)
            // Anything else is a file with a key, as in curl.
            let isFile = !text.isEmpty && !text.lowercasedASCII.hasPrefix("sha")
            pins.append(isFile ? text : try PinFormat.pin(text, at: place))
        }
        found.append(HostPins(patterns: patterns, pins: pins))
    }

    /// Splits a shell command line into words and removes the quotes.
    private static func words(_ line: String, at place: String) throws(PinFormatError) -> [String] {
        var words: [String] = []
        var word: String?
        var quote: Character?
        var isEscaped = false
        for character in line {
            if isEscaped {
                word = (word ?? "") + String(character)
                isEscaped = false
            } else if let open = quote {
                if character == open {
                    quote = nil
                } else {
                    word = (word ?? "") + String(character)
                }
            } else if character == "\\" {
                isEscaped = true
            } else if character == "'" || character == "\"" {
                quote = character
                word = word ?? ""
            } else if character.isWhitespace {
                if let done = word { words.append(done) }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        guard quote == nil else {
            throw PinFormatError(place, "unterminated quote", expected: "\(quote ?? "'")")
        }
        if let word { words.append(word) }
        return words
    }

    /// Writes a curl command for each host.
    package static func write(_ hosts: [ExportedPins]) -> String {
        var lines: [String] = []
        for host in hosts {
            let pins = host.keys.map { "sha256//\($0.digestText)" }.joined(separator: ";")
            for name in host.names {
                let domain = HostText.bracketed(name.domain)
                lines.append("curl --pinnedpubkey '\(pins)' https://\(domain)/")
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
