import ArgumentParser
import Clocks
import Gateway
import HTTPCore
import PinObservation
import PinfoldConfiguration
import Trust

/// `pinfold pin propose`.
struct PinPropose: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "propose",
        abstract: "Propose pins from what is recorded of observed servers.",
        discussion: """
            Prints `hosts` and `pinsets` with at least two keys for each server: the server's own \
            if it has outlived a renewal, else an issuer's. Comments say what speaks for each, \
            what does not, and where it belongs: an entry is printed only if nothing that applies \
            now is lost by it. A proposed pinset only reports at first. For servers without a \
            proposal, a warning says why. Exits with 1 if there is none for a --host, or for any.
            """)

    /// The forms of the output.
    enum Format: String, CaseIterable, ExpressibleByArgument {
        case yaml, json
    }

    @OptionGroup var options: ObservationRecordOptions

    @Option(
        help: ArgumentHelp(
            "For how long a server, and a key, must have been seen: s, m, h or d.",
            valueName: "period"))
    var minimum = ObservationPeriod(days: 7)

    @Option(
        help: ArgumentHelp(
            "A key to pin as well, which the server need not have shown; repeatable.",
            valueName: "sha256/BASE64"))
    var backup: [String] = []

    @Option(help: "The form of the output.")
    var format = Format.yaml

    @Option(
        help: ArgumentHelp(
            "Write to this file, which must not exist, instead of standard output.",
            valueName: "file"), completion: .file())
    var out: String?

    func validate() throws {
        if !backup.isEmpty, options.wanted.count != 1 {
            throw ValidationError("--backup is a key of one server: expected it with one --host")
        }
        _ = try backups()
    }

    private func backups() throws -> [SHA256Digest] {
        try backup.map { text in
            guard case .literal(let pins)? = try? Pin.parse(text), pins.count == 1,
                case .keyDigest(let digest)? = pins.first
            else {
                throw ValidationError(
                    "--backup \(text): expected a key's pin such as sha256/BASE64")
            }
            return digest
        }
    }

    func run() throws {
        let configuration = try options.configuration()
        let now = Clock.wallSeconds()
        var settings = ProposalOptions(now: now)
        settings.minimum = minimum.seconds
        settings.backups = try backups()
        let hosts = try options.hosts(configuration)
        var parts: [ProposalDocument.Part] = []
        for host in hosts {
            // Servers with pins have what they need, unless they are asked for.
            let entry = configuration.hostEntry(
                host: host.name.host.utf8.span, port: host.name.port)
            if options.host.isEmpty, configuration.isPinned(entry: entry) { continue }
            parts.append(
                ProposalDocument.Part(
                    name: host.name,
                    result: Result { () throws(PinProposalReason) in
                        try host.proposal(settings)
                    },
                    place: ProposalPlace(of: host.name, in: configuration)))
        }
        for wanted in options.wanted where !hosts.contains(where: { wanted.includes($0.name) }) {
            parts.append(
                ProposalDocument.Part(
                    name: ObservedName(host: wanted.host, port: wanted.port ?? 443),
                    result: .failure(.neverSeen), place: .anywhere))
        }
        let document = ProposalDocument(
            parts, taken: configuration.pinsets.map(\.pinset.name), now: now)
        if format == .yaml { for refusal in document.refusals { writeWarning(refusal) } }
        if !document.isEmpty || format == .json {
            try write(format == .yaml ? document.yaml : document.json)
        }
        if document.isEmpty || !options.host.isEmpty && !document.refusals.isEmpty {
            if parts.isEmpty { writeError("no server without pins is recorded") }
            throw ExitCode(1)
        }
    }

    private func write(_ text: String) throws {
        guard let out else { return writeToStandardOutput(text) }
        var files = NewFiles()
        do {
            try files.write(Array(text.utf8), to: out, mode: NewFiles.open)
        } catch {
            files.remove()
            throw CommandError("\(error)")
        }
    }
}
