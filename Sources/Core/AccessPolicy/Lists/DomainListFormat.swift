/// How the lines of a list's file are written.
package enum DomainListFormat: String, Sendable, CaseIterable {
    /// Told for each file by its first lines.
    case auto
    /// One name, network or address a line. A name covers itself and all names below it, `*.name`
    /// only those below it.
    case domains
    /// Lines of a hosts file (hosts(5)), `0.0.0.0 name name`: each name covers itself alone.
    case hosts
    /// Lines of dnsmasq's configuration, `address=/name/…`, `server=/name/…`, `local=/name/`: each
    /// name covers itself and all names below it.
    case dnsmasq
    /// Rules of a filter list for whole domains, `||name^`: a name covers itself and all names
    /// below it. `@@||name^` is an exception from the other rules of the same file.
    case filter
}

/// What a name of a list covers.
package enum DomainReach: Sendable, Hashable, CaseIterable {
    /// The name, and none below it.
    case nameAlone
    /// The name and all names below it.
    case nameAndBelow
    /// The names below it, at any depth, but not the name.
    case below
    /// The name and all names below it are exceptions: no other entry of the file covers them.
    case exception
}

/// Why a line of a list's file means nothing.
package enum DomainListReason: Sendable, Hashable, CaseIterable {
    case notAName
    case notASCII
    case hostBits
    case notHosts
    case notDNSMasq
    case notWholeDomain
    case modifiers
    case tooLong

    /// What is wrong, as the end of a sentence about the line.
    package var text: String {
        switch self {
        case .notAName: "is not a name, an address or a network"
        case .notASCII: "is not ASCII (an internationalized name is written xn--…)"
        case .hostBits: "is a network with bits set after its prefix"
        case .notHosts: "is not an address followed by names"
        case .notDNSMasq: "is not address=/name/…, server=/name/… or local=/name/"
        case .notWholeDomain: "is not a rule for a whole domain, ||name^ or @@||name^"
        case .modifiers: "is a rule with modifiers, which does not apply to a whole domain"
        case .tooLong: "is longer than \(DomainListReader.maximumLineBytes) bytes"
        }
    }
}

/// What was found in one file.
package struct DomainListReport: Sendable, Equatable {
    /// A line that means nothing, at least in part.
    package struct Line: Sendable, Equatable {
        /// Its number, counted from 1.
        package var number: Int
        package var problem: DomainListReason
    }

    /// How many of the lines that mean nothing are kept.
    package static let maximumLines = 5

    /// The format of its lines, never `auto`; `nil` if no line told it.
    package var format: DomainListFormat?
    /// How many names, addresses and networks the file has, each as often as it is written;
    /// exceptions count as well.
    package var entries = 0
    /// Whether it has comments, or other lines that are meant to be no entries.
    package var hasComments = false
    /// How many lines mean nothing.
    package var meaninglessLines = 0
    /// The first of them.
    package var firstMeaningless: [Line] = []

    package init() {}

    mutating func note(_ problem: DomainListReason, line: Int) {
        meaninglessLines += 1
        guard firstMeaningless.count < Self.maximumLines else { return }
        firstMeaningless.append(Line(number: line, problem: problem))
    }
}
