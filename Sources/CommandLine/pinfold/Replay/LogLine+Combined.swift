import HTTPCore

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
        if !isDash(user) { set(.user, append(unescaped(user))) }
        guard at < end, self[at] == UInt8(ascii: "[") else { return false }
        let start = at + 1
        while at < end, self[at] != UInt8(ascii: "]") { at += 1 }
        guard at < end, let time = Self.rfc3339(slice(start..<at)) else { return false }
        set(.time, append(time))
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
            set(field, isQuoted ? append(unescaped(value)) : value)
        }
        return true
    }

    private mutating func setRequestLine(_ line: Range<Int>) {
        if isDash(line) { return }
        let parts = slice(line).split(
            separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard parts.count >= 2 else { return }
        set(.method, append(unescaped(parts[0].startIndex..<parts[0].endIndex)))
        let target =
            parts[1]
            .startIndex..<(parts.count > 2 ? parts[parts.count - 2] : parts[1])
            .endIndex
        set(.target, append(unescaped(target)))
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

    /// The bytes that escapes stand for (Apache 2.4, mod_log_config).
    private func unescaped(_ range: Range<Int>) -> [UInt8] {
        guard slice(range).contains(UInt8(ascii: "\\")) else { return Array(slice(range)) }
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

    /// `21/Nov/2026:16:00:19 +0000` in the form of RFC 3339.
    private static func rfc3339(_ time: ArraySlice<UInt8>) -> [UInt8]? {
        let text = Array(time)
        guard text.count == 26, let month = CivilDate.month(named: text[3..<6]) else { return nil }
        let digits = month < 10 ? "0\(month)" : "\(month)"
        var result = Array(text[7..<11])
        result += "-\(digits)-".utf8
        result += text[..<2]
        result.append(UInt8(ascii: "T"))
        result += text[12..<20]
        result += text[21..<24]
        result.append(UInt8(ascii: ":"))
        return result + text[24...]
    }
}
