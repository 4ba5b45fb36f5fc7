import ArgumentParser
import Gateway
import Trust

/// `pinfold trust`: a verdict on certificates without a connection.
struct Trust: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Judge a server's certificates without a connection.",
        discussion: """
            Says whether a server with these certificates would be trusted, now or --at another \
            time, by the code that judges live connections. Exits with 0 if it would, 1 if not, \
            and 2 if the question cannot be answered: a file that cannot be read, no certificate \
            where one is needed, an unknown pinset.

            With --batch, standard input has a question a line, a JSON object of id, chain, \
            intermediates, roots (PEM or files, or lists of them), host, mode, pins, \
            allowInvalidCertificates, validatesDomainName, at and profile, and standard output an \
            answer a line: id, verdict (pass, fail, or error for a line that is no question), \
            reason and detail. It exits with 0 if every line was answered with pass or fail, else \
            with 2.
            """)

    @Option(
        help: ArgumentHelp(
            "What the server presents, the leaf first: PEM, or the DER of one; repeatable.",
            valueName: "file"))
    var chain: [String] = []

    @Option(help: ArgumentHelp("The name or address that is asked for.", valueName: "name"))
    var host: String?

    @Option(
        help: ArgumentHelp(
            "With --config: the server's port, which entries of `hosts` may name; 443 by default.",
            valueName: "port"))
    var port: UInt16?

    @Option(
        help: ArgumentHelp(
            "Trust anchors: `system` (the default) or a file; repeatable.", valueName: "file"))
    var roots: [String] = []

    @Option(help: ArgumentHelp("Certificates the server does not send.", valueName: "file"))
    var intermediates: [String] = []

    @Option(
        help: ArgumentHelp(
            "none, publicKey or certificate; by default publicKey with pins, else none."))
    var mode: PinningMode?

    @Option(
        name: .customLong("pin"),
        help: ArgumentHelp(
            "A pin as in the configuration: sha256/BASE64, a fingerprint or a file; repeatable.",
            valueName: "pin"))
    var pins: [String] = []

    @Flag(help: "As `allowInvalidCertificates` of a pinset.")
    var allowInvalid = false

    @Flag(help: "As `validatesDomainName: false` of a pinset.")
    var noDomain = false

    @Option(
        help: ArgumentHelp(
            "When, in place of now, as in 2027-06-01T00:00:00Z.", valueName: "time"))
    var at: String?

    @Option(
        help: ArgumentHelp(
            "The OCSP response that the server staples, in DER; it is judged as "
                + "`ocspStapling: required` does.", valueName: "file"))
    var ocsp: String?

    @Option(help: "lenient, strict (the default) or pedantic.")
    var profile: TrustProfile?

    @Option(
        help: ArgumentHelp(
            "Apply what this configuration says of the host: anchors, profile, pinsets.",
            valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp(
            "With --config: this pinset, in place of the host's.", valueName: "name"))
    var pinset: String?

    @Flag(help: "Print the verdict as JSON.")
    var json = false

    @Flag(help: "Answer questions on standard input, a line of JSON each.")
    var batch = false

    func validate() throws {
        let isSpecific =
            !chain.isEmpty || host != nil || port != nil || !roots.isEmpty
            || !intermediates.isEmpty
        let hasPolicy = mode != nil || !pins.isEmpty || allowInvalid || noDomain
        if batch,
            isSpecific || hasPolicy || ocsp != nil || at != nil || profile != nil || config != nil
                || json
        {
            throw ValidationError("--batch takes everything from its lines, and no other option")
        }
        if !batch, chain.isEmpty { throw ValidationError("--chain is missing") }
        if pinset != nil, config == nil { throw ValidationError("--pinset needs --config") }
        if port != nil, config == nil { throw ValidationError("--port needs --config") }
        if port == 0 { throw ValidationError("--port is 0; expected a number from 1 to 65535") }
        if config != nil, hasPolicy {
            throw ValidationError(
                "--config brings the pinsets: no --mode, --pin, --allow-invalid or --no-domain")
        }
        if !batch, host == nil, !noDomain {
            throw ValidationError("--host is missing; --no-domain checks no name")
        }
    }

    func run() throws {
        if batch { return try answerLines() }
        let answer: TrustAnswer
        do {
            var checker = TrustChecker()
            answer = try checker.answer(try question())
        } catch let problem as TrustQuestionProblem {
            if json { writeToStandardOutput(TrustAnswer(problem).json) }
            writeToStandardError("pinfold: \(problem)\n")
            throw ExitCode(2)
        }
        writeToStandardOutput(
            json
                ? answer.json
                : "\(answer.verdict.rawValue): \(answer.reason): \(answer.detail)\n")
        if answer.verdict != .pass { throw ExitCode(1) }
    }

    private func question() throws -> TrustQuestion {
        var question = TrustQuestion()
        question.host = host
        question.chain = chain.map { .file($0) }
        question.intermediates = intermediates.map { .file($0) }
        if let at { question.time = try TrustQuestion.time(at, "--at") }
        if let config {
            let loaded: LoadedConfiguration
            do throws(ConfigurationErrors) {
                let source = ConfigurationSource(file: config, overlay: CommandLineOverlay())
                loaded = try source.load()
            } catch {
                throw TrustQuestionProblem(error.description)
            }
            try question.apply(loaded.snapshot, port: port ?? 443, pinset: pinset)
        } else {
            var pinset = Pinset(
                name: "", allowInvalidCertificates: allowInvalid, validatesDomainName: !noDomain)
            for pin in pins { pinset.pins += try TrustQuestion.pins(pin) }
            pinset.mode = mode ?? (pinset.pins.isEmpty ? .none : .publicKey)
            question.pinsets = [pinset]
        }
        if let ocsp {
            question.requiresStaple = true
            do throws(CommandFiles.Problem) {
                question.staple = try CommandFiles.read(ocsp)
            } catch {
                throw TrustQuestionProblem(error.description)
            }
        }
        if !roots.isEmpty { question.roots = roots.map { $0 == "system" ? .system : .file($0) } }
        if let profile { question.profile = ChosenProfile(profile) }
        return question
    }

    private func answerLines() throws {
        var batch = TrustBatch()
        while true {
            let chunk = readStandardInput()
            if chunk.isEmpty { break }
            writeToStandardOutput(batch.feed(chunk[...]))
        }
        writeToStandardOutput(batch.finish())
        if batch.problems > 0 { throw ExitCode(2) }
    }
}

extension PinningMode: ExpressibleByArgument {}
extension TrustProfile: ExpressibleByArgument {}
