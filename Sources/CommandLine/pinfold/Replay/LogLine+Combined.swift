// Apache's combined format, with what the gateway's access log has behind it.
extension LogLine {
    /// `client - user [time] "method target version" status bytes "referer" "agent" id reason`,
    /// and `name=value` for the rest.
    mutating func readCombined() -> Bool {
        let end = count
        var at = 0
        guard let client = word(&at, end), word(&at, end) != nil, let user = word(&at, end) else {
            return false
        }
        set(.client, client)
        if !isDash(user) { set(.user, value(of: user)) }
        guard at < end, self[at] == UInt8(ascii: "[") else { return false }
        let start = at + 1
        while at < end, self[at] != UInt8(ascii: "]") { at += 1 }
        guard at < end, let time = appendRFC3339(start..<at) else { return false }
        set(.time, time)
        at += 1
        guard let request = quoted(&at, end), let status = word(&at, end), word(&at, end) != nil,
            quoted(&at, end) != nil, quoted(&at, end) != nil, let id = word(&at, end),
            let reason = word(&at, end)
        else { return false }
        set(.id, id)
        if !isDash(status) { set(.status, status) }
        if !isDash(reason) { set(.reason, reason) }
        setRequestLine(request)
        while at < end {
            guard let name = name(&at, end) else { return false }
            let isQuoted = at < end && self[at] == UInt8(ascii: "\"")
            guard let value = isQuoted ? quoted(&at, end) : word(&at, end) else { return false }
            guard let field = Self.field(slice(name)) else { continue }
            set(field, isQuoted ? self.value(of: value) : value)
        }
        return true
    }

    private mutating func setRequestLine(_ line: Range<Int>) {
        if isDash(line) { return }
        // From the first space to the last one, if there are two.
        guard let first = line.first(where: { self[$0] == 0x20 }),
            let last = line.last(where: { self[$0] == 0x20 })
        else { return }
        set(.method, value(of: line.lowerBound..<first))
        set(.target, value(of: (first + 1)..<(last > first ? last : line.upperBound)))
    }

    private func isDash(_ range: Range<Int>) -> Bool {
        range.count == 1 && self[range.lowerBound] == UInt8(ascii: "-")
    }

    /// A word up to the next space, behind which the position moves.
    private func word(_ at: inout Int, _ end: Int) -> Range<Int>? {
        while at < end, self[at] == 0x20 { at += 1 }
        let start = at
        while at < end, self[at] != 0x20 { at += 1 }
        defer { if at < end { at += 1 } }
        return at > start ? start..<at : nil
    }

    /// What is between quotation marks, as it is written.
    private func quoted(_ at: inout Int, _ end: Int) -> Range<Int>? {
        while at < end, self[at] == 0x20 { at += 1 }
        guard at < end, self[at] == UInt8(ascii: "\"") else { return nil }
        let start = at + 1
        at = start
        while at < end, self[at] != UInt8(ascii: "\"") {
            at += self[at] == UInt8(ascii: "\\") ? 2 : 1
        }
        guard at < end else { return nil }
        defer { at += 1 }
        return start..<at
    }

    /// The name before an equals sign, behind which the position moves.
    private func name(_ at: inout Int, _ end: Int) -> Range<Int>? {
        while at < end, self[at] == 0x20 { at += 1 }
        let start = at
        while at < end, self[at] != UInt8(ascii: "="), self[at] != 0x20 { at += 1 }
        guard at < end, self[at] == UInt8(ascii: "=") else { return nil }
        defer { at += 1 }
        return start..<at
    }

    /// Where the bytes are that a text with escapes stands for; where it is itself, if it has none.
    private mutating func value(of range: Range<Int>) -> Range<Int> {
        let hasEscapes = range.contains { self[$0] == UInt8(ascii: "\\") }
        return hasEscapes ? append(unescaped(range)) : range
    }

    /// The bytes that escapes stand for (Apache 2.4, mod_log_config).
    private func unescaped(_ range: Range<Int>) -> [UInt8] {
        var text: [UInt8] = []
        var at = range.lowerBound
        while at < range.upperBound {
            guard self[at] == UInt8(ascii: "\\"), at + 1 < range.upperBound else {
                text.append(self[at])
                at += 1
                continue
            }
            let next = self[at + 1]
            at += 2
            switch next {
            case UInt8(ascii: "b"): text.append(0x08)
            case UInt8(ascii: "n"): text.append(0x0A)
            case UInt8(ascii: "r"): text.append(0x0D)
            case UInt8(ascii: "t"): text.append(0x09)
            case UInt8(ascii: "v"): text.append(0x0B)
            case UInt8(ascii: "x"):
                guard let value = hexadecimal(at, digits: 2) else { continue }
                text.append(UInt8(value))
                at += 2
            default: text.append(next)
            }
        }
        return text
    }

    /// The abbreviations of months.
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ].map { Array($0.utf8) }

    /// Appends `21/Nov/2026:16:00:19 +0000` in the form of RFC 3339.
    /// - Returns: where it is; `nil` for anything else.
    private mutating func appendRFC3339(_ time: Range<Int>) -> Range<Int>? {
        guard time.count == 26 else { return nil }
        let at = time.lowerBound
        let (one, two, three) = (self[at + 3], self[at + 4], self[at + 5])
        guard
            let month = Self.months.firstIndex(where: {
                $0[0] == one && $0[1] == two && $0[2] == three
            })
        else { return nil }
        let start = count
        append(from: at + 7, count: 4)
        append(UInt8(ascii: "-"))
        append(UInt8(ascii: "0") + UInt8((month + 1) / 10))
        append(UInt8(ascii: "0") + UInt8((month + 1) % 10))
        append(UInt8(ascii: "-"))
        append(from: at, count: 2)
        append(UInt8(ascii: "T"))
        append(from: at + 12, count: 8)
        append(from: at + 21, count: 3)
        append(UInt8(ascii: ":"))
        append(from: at + 24, count: 2)
        return start..<count
    }
}
