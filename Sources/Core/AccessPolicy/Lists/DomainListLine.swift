import HTTPCore
import Trust

/// Takes the entries of a list's file in the order in which they are read.
package protocol DomainListSink {
    /// Takes a name: 1 to 253 bytes of letters in either case, digits, `-`, `_`, and dots between
    /// labels of 1 to 63 bytes.
    mutating func add(_ name: Span<UInt8>, _ reach: DomainReach)
    /// Takes a network, or a single address. It is an exception, or covers all of its addresses.
    mutating func add(_ network: IPNetwork, isException: Bool)
}

/// Reads one line of a list's file, which has no white space at its ends, at least one byte, and is
/// no comment.
struct DomainListLine {
    /// What a line turned out to be.
    enum Outcome: Equatable {
        /// So many entries.
        case entries(Int)
        /// Not an entry, and not meant to be one.
        case comment
        /// Some entries, but at least a part means nothing.
        case problem(DomainListReason, entries: Int)
    }

    static func read(
        _ line: Span<UInt8>, as format: DomainListFormat, into sink: inout some DomainListSink
    ) -> Outcome {
        switch format {
        case .auto, .domains: domain(line, into: &sink)
        case .hosts: hosts(line, into: &sink)
        case .dnsmasq: dnsmasq(line, into: &sink)
        case .filter: rule(line, into: &sink)
        }
    }

    // MARK: Plain names

    private static func domain(
        _ line: Span<UInt8>, into sink: inout some DomainListSink
    ) -> Outcome {
        let end = line.wordEnd(from: 0)
        guard line.isCommentOrEmpty(from: end) else {
            return .problem(line.isASCII ? .notAName : .notASCII, entries: 0)
        }
        var start = 0
        var reach = DomainReach.nameAndBelow
        if line[0] == UInt8(ascii: "*"), end > 2, line[1] == UInt8(ascii: ".") {
            (start, reach) = (2, .below)
        } else if line[0] == UInt8(ascii: "."), end > 1 {
            start = 1
        }
        if let problem = add(line.extracting(start..<end), reach, into: &sink) {
            guard start == 0 else { return .problem(problem, entries: 0) }
            return network(line.extracting(0..<end), isException: false, else: problem, into: &sink)
        }
        return .entries(1)
    }

    // MARK: Hosts files

    private static func hosts(
        _ line: Span<UInt8>, into sink: inout some DomainListSink
    ) -> Outcome {
        var end = line.wordEnd(from: 0)
        guard isAddress(line.extracting(0..<end)) else { return .problem(.notHosts, entries: 0) }
        var entries = 0
        var names = 0
        var problem: DomainListReason?
        while true {
            let start = line.wordStart(from: end)
            guard !line.isCommentOrEmpty(from: start) else { break }
            end = line.wordEnd(from: start)
            names += 1
            let name = line.extracting(start..<end)
            if isLocal(name) { continue }
            if let found = add(name, .nameAlone, into: &sink) {
                problem = problem ?? found
            } else {
                entries += 1
            }
        }
        if names == 0 { return .problem(.notHosts, entries: 0) }
        if let problem { return .problem(problem, entries: entries) }
        return entries == 0 ? .comment : .entries(entries)
    }

    /// An address, IPv6 with or without a zone (`fe80::1%lo0`).
    private static func isAddress(_ word: Span<UInt8>) -> Bool {
        let zone = word.firstIndex(of: UInt8(ascii: "%"), from: 0)
        return IPAddress(bytes: word.extracting(0..<zone)) != nil
    }

    /// The names of the machine itself and of its networks, which hosts files start with.
    private static func isLocal(_ name: Span<UInt8>) -> Bool {
        switch name.count {
        case 5: name.equals(lowercase: "local")
        case 7: name.equals("0.0.0.0")
        case 9: name.equals(lowercase: "localhost")
        case 12:
            name.equals(lowercase: "ip6-loopback") || name.equals(lowercase: "ip6-localnet")
                || name.equals(lowercase: "ip6-allnodes") || name.equals(lowercase: "ip6-allhosts")
        case 13: name.equals(lowercase: "broadcasthost") || name.equals(lowercase: "ip6-localhost")
        case 14: name.equals(lowercase: "ip6-allrouters")
        case 15: name.equals(lowercase: "ip6-mcastprefix")
        case 20: name.equals(lowercase: "localhost6.localhost")
        case 21: name.equals(lowercase: "localhost.localdomain")
        case 23: name.equals(lowercase: "localhost6.localdomain6")
        default: false
        }
    }

    // MARK: dnsmasq

    private static func dnsmasq(
        _ line: Span<UInt8>, into sink: inout some DomainListSink
    ) -> Outcome {
        let problem = Outcome.problem(.notDNSMasq, entries: 0)
        guard let prefix = dnsmasqPrefix(line) else { return problem }
        let end = line.wordEnd(from: 0)
        guard line.isCommentOrEmpty(from: end) else { return problem }
        // What follows the last slash is the answer, or the server. With # the server is the usual
        // one: an exception, which is written in another way here.
        var last = end - 1
        while line[last] != UInt8(ascii: "/") { last -= 1 }
        let isUsual = last + 2 == end && line[last + 1] == UInt8(ascii: "#")
        guard last >= prefix, !isUsual || line.starts(withLowercase: "address") else {
            return problem
        }
        var start = prefix
        var entries = 0
        var found: DomainListReason?
        while start <= last {
            let slash = line.firstIndex(of: UInt8(ascii: "/"), from: start)
            let dot = start < slash && line[start] == UInt8(ascii: ".") ? 1 : 0
            if let problem = add(
                line.extracting(start + dot..<slash), .nameAndBelow, into: &sink)
            {
                found = found ?? problem
            } else {
                entries += 1
            }
            start = slash + 1
        }
        if let found { return .problem(found, entries: entries) }
        return .entries(entries)
    }

    /// The length of `address=/`, `server=/` or `local=/` at the start.
    private static func dnsmasqPrefix(_ line: Span<UInt8>) -> Int? {
        if line.starts(withLowercase: "address=/") { return 9 }
        if line.starts(withLowercase: "server=/") { return 8 }
        return line.starts(withLowercase: "local=/") ? 7 : nil
    }

    // MARK: Filter lists

    private static func rule(
        _ line: Span<UInt8>, into sink: inout some DomainListSink
    ) -> Outcome {
        // A title, `[Adblock Plus 2.0]`.
        if line[0] == UInt8(ascii: "[") { return .comment }
        let problem = Outcome.problem(.notWholeDomain, entries: 0)
        let isException = line.starts(with: "@@")
        let start = isException ? 4 : 2
        let isAnchored = isException ? line.starts(with: "@@||") : line.starts(with: "||")
        guard isAnchored else { return problem }
        let caret = line.firstIndex(of: UInt8(ascii: "^"), from: start)
        let end = line.wordEnd(from: start)
        guard caret < end, line.isCommentOrEmpty(from: end) else { return problem }
        if caret + 1 < end {
            guard line[caret + 1] == UInt8(ascii: "$") else { return problem }
            guard areForAll(line.extracting(caret + 2..<end)) else {
                return .problem(.modifiers, entries: 0)
            }
        }
        let name = line.extracting(start..<caret)
        if add(name, isException ? .exception : .nameAndBelow, into: &sink) == nil {
            return .entries(1)
        }
        guard let address = IPAddress(literal: name) else { return problem }
        sink.add(IPNetwork(address), isException: isException)
        return .entries(1)
    }

    /// Whether no modifier changes what a rule for a whole domain applies to: `important` decides
    /// between rules, `all` names every type of request.
    private static func areForAll(_ modifiers: Span<UInt8>) -> Bool {
        var start = 0
        while start <= modifiers.count {
            let comma = modifiers.firstIndex(of: UInt8(ascii: ","), from: start)
            let modifier = modifiers.extracting(start..<comma)
            guard modifier.equals("important") || modifier.equals("all") else { return false }
            start = comma + 1
        }
        return true
    }

    // MARK: Names and networks

    /// Adds a name, with or without a dot at its end, or returns why it is none.
    private static func add(
        _ written: Span<UInt8>, _ reach: DomainReach, into sink: inout some DomainListSink
    ) -> DomainListReason? {
        var count = written.count
        if count > 1, written[count - 1] == UInt8(ascii: ".") { count -= 1 }
        guard count > 0, count <= HostPattern.nameBytes else {
            return written.isASCII ? .notAName : .notASCII
        }
        var label = 0
        var isNumber = true
        for index in 0..<count {
            let byte = written[index]
            if ASCII.isLetter(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") {
                isNumber = false
            } else if byte == UInt8(ascii: ".") {
                guard label > 0 else { return .notAName }
                (label, isNumber) = (0, true)
                continue
            } else if !ASCII.isDigit(byte) {
                return written.isASCII ? .notAName : .notASCII
            }
            label &+= 1
            guard label <= HostPattern.labelBytes else { return .notAName }
        }
        // Resolvers treat names that end in a number as addresses (WHATWG URL, "ends in a number").
        guard label > 0, !isNumber else { return .notAName }
        sink.add(written.extracting(0..<count), reach)
        return nil
    }

    /// Adds a network or an address.
    private static func network(
        _ word: Span<UInt8>, isException: Bool, else problem: DomainListReason,
        into sink: inout some DomainListSink
    ) -> Outcome {
        let slash = word.firstIndex(of: UInt8(ascii: "/"), from: 0)
        guard let address = IPAddress(literal: word.extracting(0..<slash)) else {
            return .problem(problem, entries: 0)
        }
        guard slash < word.count else {
            sink.add(IPNetwork(address), isException: isException)
            return .entries(1)
        }
        guard let length = prefixLength(word.extracting(slash + 1..<word.count)),
            let network = IPNetwork(masking: address, prefixLength: length)
        else { return .problem(problem, entries: 0) }
        // A mapped address with a short prefix is compared as written, as by IPNetwork.
        let written = network.address.family == address.family ? address : address.unmapped
        guard network.address == written else { return .problem(.hostBits, entries: 0) }
        sink.add(network, isException: isException)
        return .entries(1)
    }

    private static func prefixLength(_ digits: Span<UInt8>) -> Int? {
        guard (1...3).contains(digits.count), digits.count == 1 || digits[0] != UInt8(ascii: "0")
        else { return nil }
        var value = 0
        for index in digits.indices {
            guard ASCII.isDigit(digits[index]) else { return nil }
            value = value * 10 + Int(digits[index] &- UInt8(ascii: "0"))
        }
        return value
    }

    // MARK: Telling the format

    /// The format that a line is written in, or `nil` if it could be several, or none.
    static func format(of line: Span<UInt8>) -> DomainListFormat? {
        if line.starts(with: "||") || line.starts(with: "@@||") || line.isCosmeticRule {
            return .filter
        }
        if dnsmasqPrefix(line) != nil { return .dnsmasq }
        let end = line.wordEnd(from: 0)
        if line.isCommentOrEmpty(from: line.wordStart(from: end)) {
            var nowhere = NoSink()
            if case .entries = domain(line, into: &nowhere) { return .domains }
            return nil
        }
        return isAddress(line.extracting(0..<end)) ? .hosts : nil
    }

    private struct NoSink: DomainListSink {
        mutating func add(_ name: Span<UInt8>, _ reach: DomainReach) {}
        mutating func add(_ network: IPNetwork, isException: Bool) {}
    }
}

extension Span where Element == UInt8 {
    /// The end of the word that begins at an offset.
    fileprivate func wordEnd(from start: Int) -> Int {
        var end = start
        while end < count, !ASCII.isWhitespace(self[end]) { end &+= 1 }
        return end
    }

    /// The start of the next word.
    fileprivate func wordStart(from end: Int) -> Int {
        var start = end
        while start < count, ASCII.isWhitespace(self[start]) { start &+= 1 }
        return start
    }

    /// Whether nothing, or a comment, follows white space.
    fileprivate func isCommentOrEmpty(from end: Int) -> Bool {
        let start = wordStart(from: end)
        return start == count || self[start] == UInt8(ascii: "#")
            || self[start] == UInt8(ascii: "!")
    }

    /// Whether all bytes are ASCII.
    fileprivate var isASCII: Bool {
        for index in indices where self[index] >= 0x80 { return false }
        return true
    }

    /// Whether the line is a rule of a filter list for elements of pages: `##`, `#@#`, `#?#`, `#$#`
    /// or `#%#` with names before it or none.
    var isCosmeticRule: Bool {
        let sign = firstIndex(of: UInt8(ascii: "#"), from: 0)
        guard sign + 1 < count, sign == 0 || !ASCII.isWhitespace(self[sign - 1]) else {
            return false
        }
        switch self[sign + 1] {
        case UInt8(ascii: "#"):
            return sign + 2 < count && !ASCII.isWhitespace(self[sign + 2])
                && self[sign + 2] != UInt8(ascii: "#")
        case UInt8(ascii: "@"), UInt8(ascii: "?"), UInt8(ascii: "$"), UInt8(ascii: "%"):
            return firstIndex(of: UInt8(ascii: "#"), from: sign + 2) < Swift.min(count, sign + 5)
        default: return false
        }
    }
}
