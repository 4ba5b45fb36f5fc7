import HTTPCore

/// One block of a PEM file (RFC 7468).
package struct PEMBlock {
    /// The label after `BEGIN`, such as `CERTIFICATE`.
    package var label: String
    /// The decoded contents.
    package var bytes: [UInt8]
}

/// Reads and writes PEM (RFC 7468).
package enum PEM {
    private static let begin = Array("-----BEGIN ".utf8)
    private static let end = Array("-----END ".utf8)
    private static let dashes = Array("-----".utf8)

    /// Whether a file's contents are PEM rather than DER.
    static func isArmored(_ contents: [UInt8]) -> Bool {
        var lines = Lines(rest: contents[...])
        while let line = lines.next() {
            if line.starts(with: begin) { return true }
        }
        return false
    }

    /// The blocks of a PEM file in order. Text outside the blocks is a comment.
    package static func blocks(_ contents: [UInt8]) throws(PinError) -> [PEMBlock] {
        var blocks: [PEMBlock] = []
        var label: [UInt8]?
        var body: [UInt8] = []
        var lines = Lines(rest: contents[...])
        while let line = lines.next() {
            if let found = boundary(line, begin) {
                guard label == nil else { throw .badArmor }
                label = found
                body.removeAll(keepingCapacity: true)
            } else if let found = boundary(line, end) {
                guard let open = label, open == found, let bytes = Base64.decode(body) else {
                    throw .badArmor
                }
                blocks.append(PEMBlock(label: String(decoding: open, as: UTF8.self), bytes: bytes))
                label = nil
            } else if label != nil {
                for byte in line where !ASCII.isWhitespace(byte) { body.append(byte) }
            }
        }
        guard label == nil else { throw .badArmor }
        return blocks
    }

    /// The lines of a file, without their line endings; empty lines are skipped.
    private struct Lines: IteratorProtocol {
        var rest: ArraySlice<UInt8>

        mutating func next() -> ArraySlice<UInt8>? {
            while let first = rest.first {
                guard !Self.isEnd(first) else {
                    rest.removeFirst()
                    continue
                }
                let end = rest.firstIndex(where: Self.isEnd) ?? rest.endIndex
                defer { rest = rest[end...] }
                return rest[..<end]
            }
            return nil
        }

        private static func isEnd(_ byte: UInt8) -> Bool {
            byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
        }
    }

    /// The label of a boundary line; `nil` for every other line.
    private static func boundary(_ line: ArraySlice<UInt8>, _ start: [UInt8]) -> [UInt8]? {
        guard line.starts(with: start) else { return nil }
        var rest = line.dropFirst(start.count)
        while let last = rest.last, ASCII.isWhitespace(last) { rest.removeLast() }
        guard rest.count > dashes.count, rest.suffix(dashes.count) == dashes[...] else {
            return nil
        }
        return Array(rest.dropLast(dashes.count))
    }
}

extension PEM {
    /// A certificate in PEM (RFC 7468 §5.1): lines of 64 digits, each followed by a line feed.
    package static func text(certificate der: [UInt8]) -> String {
        let digits = Array(Base64.encode(der).utf8)
        var text = "-----BEGIN CERTIFICATE-----\n"
        for start in stride(from: 0, to: digits.count, by: 64) {
            text += String(decoding: digits[start..<min(start + 64, digits.count)], as: UTF8.self)
            text += "\n"
        }
        return text + "-----END CERTIFICATE-----\n"
    }
}
