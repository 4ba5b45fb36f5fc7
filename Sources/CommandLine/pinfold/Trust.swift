import ArgumentParser
import Gateway
import Trust

/// `pinfold trust`: verifies certificates without a connection.
struct Trust: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Verify a server's certificates without a connection.",
        discussion: """
            Shows whether a server with these certificates would be trusted, now or at the time \
            given with --at, with the code that verifies live connections. Exits with 0 if the \
            server would be trusted, with 1 if not, and with 2 if there is no verdict, for example \
            because a file cannot be read or a pinset is unknown.

            With --batch, reads one question per line from standard input, each a JSON object \
            with id, chain, intermediates, roots (PEM text, file names or lists of these), host, \
            mode, pins, allowInvalidCertificates, validatesDomainName, at and profile. Writes one \
            answer per line to standard output: id, verdict (pass, fail, or error if the line is \
            not a valid question), reason and detail. Exits with 0 if every verdict is pass or \
            fail, otherwise with 2.
            """)

    @Option(
        help: ArgumentHelp(
            "A file of the certificates that the server presents, leaf first: PEM, or a single one "
                + "in DER; repeatable.",
            valueName: "file"), completion: .file())
    var chain: [String] = []

    @Option(help: ArgumentHelp("The requested host name or IP address.", valueName: "name"))
    var host: String?

    @Option(
        help: ArgumentHelp(
            "With --config: the server's port, for entries of `hosts` that name one; 443 by "
                + "default.",
            valueName: "port"))
    var port: UInt16?

    @Option(
        help: ArgumentHelp(
            "Trust these anchors: `system` (the default), or a file of certificates (PEM or DER); "
                + "repeatable.", valueName: "roots"), completion: .file())
    var roots: [String] = []

    @Option(
        help: ArgumentHelp(
            "A file of intermediate certificates that the server does not send; repeatable.",
            valueName: "file"), completion: .file())
    var intermediates: [String] = []

    @Option(
        help: ArgumentHelp(
            "What pins are compared with: by default, publicKey if there are pins."))
    var mode: PinningMode?

    @Option(
        name: .customLong("pin"),
        help: ArgumentHelp(
            "A pin, as in the configuration: sha256/BASE64, a certificate's fingerprint or a "
                + "file; repeatable.",
            valueName: "pin"))
    var pins: [String] = []

    @Flag(help: "The same as `allowInvalidCertificates: true` in a pinset.")
    var allowInvalidCertificates = false

    @Flag(help: "The same as `validatesDomainName: false` in a pinset.")
    var noDomain = false

    @Option(
        help: ArgumentHelp(
            "Verify at this time instead of now, e.g. 2027-06-01T00:00:00Z.", valueName: "time"))
    var at: String?

    @Option(
        help: ArgumentHelp(
            "A file with the OCSP response that the server staples, in DER; verified as with "
                + "`ocspStapling: required`.", valueName: "file"), completion: .file())
    var ocsp: String?

    @Option(help: "How strictly chains are verified; strict by default.")
    var profile: TrustProfile?

    @Option(
        help: ArgumentHelp(
            "Apply this configuration's settings for the host: anchors, profile, pinsets.",
            valueName: "file"), completion: .file())
    var config: String?

    @Option(
        help: ArgumentHelp(
            "With --config: use this pinset instead of the host's.", valueName: "name"))
    var pinset: String?

    @Flag(help: "Print the verdict as JSON.")
    var json = false

    @Flag(help: "Answer questions from standard input, one JSON object per line.")
    var batch = false

    func validate() throws {
        let isSpecific =
            !chain.isEmpty || host != nil || port != nil || !roots.isEmpty
            || !intermediates.isEmpty
        let hasPolicy = mode != nil || !pins.isEmpty || allowInvalidCertificates || noDomain
        if batch,
            isSpecific || hasPolicy || ocsp != nil || at != nil || profile != nil || config != nil
                || json
        {
            throw ValidationError(
                "--batch reads all settings from standard input and takes no other option")
        }
        if !batch, chain.isEmpty { throw ValidationError("--chain is missing") }
        if pinset != nil, config == nil { throw ValidationError("--pinset needs --config") }
        if port != nil, config == nil { throw ValidationError("--port needs --config") }
        if port == 0 { throw ValidationError("--port is 0; expected a number from 1 to 65535") }
        if config != nil, hasPolicy {
            throw ValidationError(
                "--config supplies the pinsets: it cannot be combined with --mode, --pin, "
                    + "--allow-invalid-certificates or --no-domain")
        }
        if !batch, host == nil, !noDomain {
            throw ValidationError("--host is missing; --no-domain skips the name check")
        }
    }

    func run() throws {
        if batch { return try answerLines() }
        let result: TrustResult
        do {
            var checker = TrustChecker()
            result = try checker.check(try query())
        } catch let problem as TrustQueryError {
            if json { writeToStandardOutput(TrustResult(problem).json) }
            // An invalid configuration may have several errors, one on each line.
            for line in problem.description.split(separator: "\n") { writeError(String(line)) }
            throw ExitCode(2)
        }
        writeToStandardOutput(
            json
                ? result.json
                : "\(result.verdict.rawValue): \(result.reason): \(result.detail)\n")
        if result.verdict != .pass { throw ExitCode(1) }
    }

    private func query() throws -> TrustQuery {
        var query = TrustQuery()
        query.host = host
        query.chain = chain.map { .file($0) }
        query.intermediates = intermediates.map { .file($0) }
        if let at { query.time = try TrustQuery.time(at, "--at") }
        if let config {
            let loaded: LoadedConfiguration
            do throws(ConfigurationErrors) {
                let source = ConfigurationSource(file: config, overlay: CommandLineOverlay())
                loaded = try source.load()
            } catch {
                throw TrustQueryError(error.description)
            }
            try query.apply(loaded.snapshot, port: port ?? 443, pinset: pinset)
        } else {
            var pinset = Pinset(
                name: "", allowInvalidCertificates: allowInvalidCertificates,
                validatesDomainName: !noDomain)
            for pin in pins { pinset.pins += try TrustQuery.pins(pin) }
            pinset.mode = mode ?? (pinset.pins.isEmpty ? .none : .publicKey)
            query.pinsets = [pinset]
        }
        if let ocsp {
            query.requiresStaple = true
            do throws(CommandFiles.ReadError) {
                query.staple = try CommandFiles.read(ocsp)
            } catch {
                throw TrustQueryError(error.description)
            }
        }
        if !roots.isEmpty { query.roots = roots.map { $0 == "system" ? .system : .file($0) } }
        if let profile { query.profile = ChosenProfile(profile) }
        return query
    }

    private func answerLines() throws {
        var batch = TrustBatch()
        while true {
            let chunk = readStandardInput()
            if chunk.isEmpty { break }
            writeToStandardOutput(batch.feed(chunk[...]))
        }
        writeToStandardOutput(batch.finish())
        if batch.errorCount > 0 { throw ExitCode(2) }
    }
}

extension PinningMode: ExpressibleByArgument {}
extension TrustProfile: ExpressibleByArgument {}
