import HTTPCore

/// Reads a file of a list from its bytes, which may arrive in any portions: what is found is the
/// same byte by byte. It keeps at most one line, and, until the format is told, the first ones.
package struct DomainListReader {
    /// The longest line that can have entries, in bytes.
    package static let maximumLineBytes = 4096
    /// The format is told by this many lines that belong to one.
    static let telling = 16
    /// And if there are fewer, by those among the first lines of this many bytes.
    static let maximumHeldBytes = 32 << 10

    /// `nil` until it is told.
    private var format: DomainListFormat?
    /// The start of a line whose end has not been read, at most one byte more than a line may have.
    private var unfinished: [UInt8] = []
    private var number = 0
    private var report = DomainListReport()
    /// Lines that were read before the format is told, and how many of each format there are.
    private var held: [UInt8] = []
    private var heldLines: [(number: Int, range: Range<Int>)] = []
    private var votes: [(format: DomainListFormat, count: Int)] = [
        // The first of those with the most.
        (.filter, 0), (.dnsmasq, 0), (.hosts, 0), (.domains, 0),
    ]

    /// - Parameter format: `auto`: told by the first lines.
    package init(_ format: DomainListFormat = .auto) {
        self.format = format == .auto ? nil : format
    }

    /// Reads the next bytes of the file.
    package mutating func read(_ bytes: Span<UInt8>, into sink: inout some DomainListSink) {
        var start = 0
        while true {
            let end = bytes.firstIndex(of: 0x0A, from: start)
            if end == bytes.count { break }
            if unfinished.isEmpty {
                line(bytes.extracting(start..<end), into: &sink)
            } else {
                keep(bytes.extracting(start..<end))
                takeUnfinished(into: &sink)
            }
            start = end + 1
        }
        keep(bytes.extracting(start..<bytes.count))
    }

    /// Ends the file: its last line need not end with a line feed.
    package mutating func finish(into sink: inout some DomainListSink) -> DomainListReport {
        if !unfinished.isEmpty { takeUnfinished(into: &sink) }
        if format == nil { decide(into: &sink) }
        report.format = format
        return report
    }

    // MARK: Lines

    private mutating func keep(_ bytes: Span<UInt8>) {
        let room = Self.maximumLineBytes + 1 - unfinished.count
        for index in 0..<min(room, bytes.count) { unfinished.append(bytes[index]) }
    }

    private mutating func takeUnfinished(into sink: inout some DomainListSink) {
        var taken: [UInt8] = []
        swap(&taken, &unfinished)
        line(taken.span, into: &sink)
        taken.removeAll(keepingCapacity: true)
        swap(&taken, &unfinished)
    }

    /// Reads a line without its line feed.
    private mutating func line(_ line: Span<UInt8>, into sink: inout some DomainListSink) {
        number += 1
        var start = 0
        var end = min(line.count, Self.maximumLineBytes)
        if number == 1, Self.startsWithByteOrderMark(line) { start = 3 }
        while start < end, Self.isSpace(line[start]) { start &+= 1 }
        while start < end, Self.isSpace(line[end &- 1]) { end &-= 1 }
        guard start < end else {
            if line.count > Self.maximumLineBytes { report.note(.tooLong, line: number) }
            return
        }
        let text = line.extracting(start..<end)
        if text[0] == UInt8(ascii: "!") || text[0] == UInt8(ascii: "#") && isComment(text) {
            report.hasComments = true
        } else if line.count > Self.maximumLineBytes {
            report.note(.tooLong, line: number)
        } else if let format {
            read(text, number, as: format, into: &sink)
        } else {
            hold(text, into: &sink)
        }
    }

    /// Whether a line that starts with `#` is a comment. In a filter list it can be a rule.
    private func isComment(_ line: Span<UInt8>) -> Bool {
        if let format, format != .filter { return true }
        return !line.isCosmeticRule
    }

    private mutating func read(
        _ line: Span<UInt8>, _ number: Int, as format: DomainListFormat,
        into sink: inout some DomainListSink
    ) {
        // Held as a possible rule.
        if line[0] == UInt8(ascii: "#"), format != .filter {
            report.hasComments = true
            return
        }
        switch DomainListLine.read(line, as: format, into: &sink) {
        case .entries(let count): report.entries += count
        case .comment: report.hasComments = true
        case .problem(let problem, let count):
            report.entries += count
            report.note(problem, line: number)
        }
    }

    /// U+FEFF in UTF-8.
    private static func startsWithByteOrderMark(_ line: Span<UInt8>) -> Bool {
        line.count >= 3 && line[0] == 0xEF && line[1] == 0xBB && line[2] == 0xBF
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        ASCII.isWhitespace(byte) || byte == 0x0D
    }

    // MARK: Telling the format

    private mutating func hold(_ line: Span<UInt8>, into sink: inout some DomainListSink) {
        let start = held.count
        for index in line.indices { held.append(line[index]) }
        heldLines.append((number, start..<held.count))
        var isTold = held.count >= Self.maximumHeldBytes
        if line.starts(withLowercase: "[adblock") {
            votes[0].count = .max
            isTold = true
        } else if line[0] != UInt8(ascii: "#"), let found = DomainListLine.format(of: line) {
            for index in votes.indices where votes[index].format == found {
                votes[index].count += 1
            }
            isTold = isTold || votes.reduce(0) { $0 + $1.count } >= Self.telling
        }
        if isTold { decide(into: &sink) }
    }

    private mutating func decide(into sink: inout some DomainListSink) {
        var best = votes[0]
        for vote in votes where vote.count > best.count { best = vote }
        // Without any, the lines mean nothing in every format.
        let format = best.count > 0 ? best.format : .domains
        if best.count > 0 { self.format = format }
        let (text, lines) = (held, heldLines)
        (held, heldLines) = ([], [])
        for line in lines {
            read(text.span.extracting(line.range), line.number, as: format, into: &sink)
        }
    }
}
