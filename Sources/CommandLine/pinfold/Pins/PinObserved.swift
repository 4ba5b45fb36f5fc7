import ArgumentParser
import Clocks
import Gateway
import HTTPCore
import PinObservation

/// `pinfold pin observed`.
struct PinObserved: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "observed",
        abstract: "Show what is recorded of the keys of observed servers.",
        discussion: """
            Lists the servers that clients have used and whose entry has `pins: observe`; with \
            --host, their certificates, keys, addresses and paths to trusted roots. The gateway \
            need not run. Exits with 1 if the record cannot be read.
            """)

    @OptionGroup var options: ObservationRecordOptions

    @Flag(help: "Print one JSON object per host and line: all that is recorded.")
    var json = false

    func run() throws {
        let hosts = try options.hosts(try options.configuration())
        if json { return writeToStandardOutput(hosts.map { $0.json.text + "\n" }.joined()) }
        guard options.host.isEmpty else {
            for wanted in options.wanted
            where !hosts.contains(where: { wanted.includes($0.name) }) {
                writeWarning("\(wanted.host): \(PinProposalReason.neverSeen)")
            }
            return writeToStandardOutput(hosts.map(\.text).joined(separator: "\n"))
        }
        var table = TableText(
            ["HOST", "CERTIFICATES", "KEYS", "ADDRESSES", "SINCE", "LAST SEEN", "EXPIRES"],
            rightAligned: [1, 2, 3])
        for host in hosts {
            let latest = host.chains.max { $0.lastSeen < $1.lastSeen }
            table.add([
                "\(host.name)", "\(host.chains.count)", "\(Set(host.chains.map(\.leaf.key)).count)",
                "\(Set(host.chains.flatMap { $0.addresses.map(\.address) }).count)",
                PinProposal.day(host.firstSeen), PinProposal.day(host.lastSeen),
                latest.map { PinProposal.day($0.leaf.notAfter) } ?? "",
            ])
        }
        writeToStandardOutput(table.text)
    }
}
