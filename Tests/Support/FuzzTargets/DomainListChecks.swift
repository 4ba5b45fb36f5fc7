import AccessPolicy
import HTTPCore

extension FuzzTarget {
    /// The first byte selects the format; after it comes a file of a list. What is read is the same
    /// however it arrives; names and networks are read again after they have been written as plain
    /// lines; and the list covers each name as it says, unless an exception does.
    func checkDomainList(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first else { return false }
        let formats = DomainListFormat.allCases
        let format = formats[Int(selector) % formats.count]
        let text = Array(bytes.dropFirst())
        let found = try Arrivals.read(text) { ends in ListOutcome(text, ends, format) }
        let lines = text.split(separator: 0x0A, omittingEmptySubsequences: false).count
        let report = found.report
        guard report.entries == found.names.count + found.networks.count,
            report.meaninglessLines <= lines,
            report.firstMeaningless.count
                == min(report.meaninglessLines, DomainListReport.maximumLines),
            report.firstMeaningless.allSatisfy({ (1...lines).contains($0.number) })
        else { throw FuzzCheckError("\(report) of \(lines) lines") }
        try checkAgain(found)
        try checkCover(found)
        return report.entries > 0
    }

    private func checkAgain(_ found: ListOutcome) throws(FuzzCheckError) {
        var written: [UInt8] = []
        for name in found.names { written += name.bytes + [0x0A] }
        for network in found.networks { written += Array("\(network.network)\n".utf8) }
        let again = ListOutcome(written, [written.count], .domains)
        guard again.names.map(\.bytes) == found.names.map(\.bytes),
            again.networks.map(\.network) == found.networks.map(\.network),
            again.report.meaninglessLines == 0
        else { throw FuzzCheckError("\(found), then \(again)") }
    }

    private func checkCover(_ found: ListOutcome) throws(FuzzCheckError) {
        var numbers = SystemRandomNumberGenerator()
        var builder = DomainListBuilder(key: DomainListKey(using: &numbers), bytes: 0)
        for name in found.names { builder.add(name.bytes.span, name.reach) }
        for network in found.networks {
            builder.add(network.network, isException: network.isException)
        }
        builder.endFile()
        let list = builder.finish()
        let hasExceptions = found.names.contains { $0.reach == .exception }
        for name in found.names {
            let below = [UInt8(ascii: "z"), UInt8(ascii: ".")] + name.bytes
            let covers =
                switch name.reach {
                case .nameAlone, .nameAndBelow: list.contains(host: name.bytes.span)
                case .below: list.contains(host: below.span)
                case .exception:
                    !list.contains(host: name.bytes.span) && !list.contains(host: below.span)
                }
            guard covers || hasExceptions && name.reach != .exception else {
                throw FuzzCheckError("\(name) is not covered as it says")
            }
        }
    }
}

private struct ListOutcome: Equatable, DomainListSink {
    struct Name: Equatable {
        var bytes: [UInt8]
        var reach: DomainReach
    }

    struct Network: Equatable {
        var network: IPNetwork
        var isException: Bool
    }

    var names: [Name] = []
    var networks: [Network] = []
    var report = DomainListReport()

    init(_ text: [UInt8], _ ends: [Int], _ format: DomainListFormat) {
        var reader = DomainListReader(format)
        var start = 0
        for end in ends {
            reader.read(text.span.extracting(start..<end), into: &self)
            start = end
        }
        report = reader.finish(into: &self)
    }

    mutating func add(_ name: Span<UInt8>, _ reach: DomainReach) {
        names.append(Name(bytes: name.indices.map { name[$0] }, reach: reach))
    }

    mutating func add(_ network: IPNetwork, isException: Bool) {
        networks.append(Network(network: network, isException: isException))
    }
}
