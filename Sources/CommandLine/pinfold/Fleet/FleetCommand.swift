import ArgumentParser
import Documents
import HTTPTypes

/// `pinfold fleet`: the gateways that share a cache.
struct FleetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet",
        abstract: "Show the gateways that share a cache, and publish their policy.",
        discussion: """
            The commands ask one of the gateways at its administrative address; which one makes no \
            difference.
            """,
        subcommands: [FleetStatus.self, FleetPublish.self, FleetRollback.self])
}

/// `pinfold fleet status`.
struct FleetStatus: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show all gateways, whether they agree on the policy, and what they see.",
        discussion: """
            Exits with 0 if all gateways are there, have the same policy and have carried out all \
            purges, with 1 if not, and with 2 if the gateway cannot be asked, does not answer, or \
            shares its cache with no others.
            """)

    @OptionGroup var options: AdministrationOptions

    @Flag(help: "Print the answer of /api/v1/fleet as it is, in JSON.")
    var json = false

    func run() throws {
        let value = try options.gatewayOrExit().value(.get, "/api/v1/fleet")
        writeToStandardOutput(json ? "\(value)\n" : FleetStatusText.text(of: value))
        if !FleetStatusText.isWell(value) { throw ExitCode(1) }
    }
}

/// The share of the gateways that takes a policy first.
struct CanaryShare: ExpressibleByArgument, Equatable {
    static let all = CanaryShare(percent: 100)

    let percent: Int

    private init(percent: Int) { self.percent = percent }

    init?(argument: String) {
        guard let percent = Int(argument.hasSuffix("%") ? argument.dropLast() : argument[...]),
            1...100 ~= percent
        else { return nil }
        self.percent = percent
    }

    var defaultValueDescription: String { "\(percent)%" }
}

/// The options for publishing a policy.
struct PublishingOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            Only this share of the gateways takes it, such as 10%: always the same ones, by their \
            names. A gateway that has no policy yet takes it in any case.
            """, valueName: "share"))
    var canary: CanaryShare?

    @Option(
        help: ArgumentHelp(
            "Wait so long for the gateways to take it; 0: do not wait.", valueName: "seconds"))
    var wait = 15.0

    func validate() throws {
        guard 0...3600 ~= wait else {
            throw ValidationError("--wait must be 0 to 3600 seconds")
        }
    }

    /// Publishes a policy, and prints which gateways have taken it.
    /// - Parameter bytes: `nil` for the newest that the gateway knows.
    func publish(_ bytes: [UInt8]?, by gateway: RunningGateway) throws {
        let share = canary ?? .all
        let answer = try gateway.value(
            .post, "/api/v1/fleet/policy?canary=\(share.percent)",
            content: .init(bytes: bytes ?? [], type: "application/octet-stream"), failing: 1)
        let published = PublishedText(answer, percent: share.percent)
        writeToStandardOutput(published.first)
        guard wait > 0 else { return }
        let rollout = try FleetRollout(published: published, gateway: gateway)
            .follow(milliseconds: Int64(wait * 1000))
        writeToStandardOutput(rollout.text)
        for warning in rollout.warnings { writeWarning(warning) }
        if !rollout.isComplete { throw ExitCode(1) }
    }
}

/// `pinfold fleet publish`.
struct FleetPublish: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "publish",
        abstract: "Publish a signed policy for all gateways, or for a share of them first.",
        discussion: """
            The gateway that is asked verifies the policy, and publishes it only if it would take \
            it itself; each gateway verifies it again before it takes it. Prints which gateways \
            have taken it. Exits with 0 if all that are meant have, with 1 if it is refused or not \
            all have in time, and with 2 if the gateway cannot be asked or does not answer.
            """)

    @Argument(
        help: ArgumentHelp(
            "The signed policy, as `pinfold policy sign` writes it.", valueName: "file"),
        completion: .file())
    var path: String?

    @Flag(help: "Publish the one that a share of the gateways has for the rest of them, too.")
    var rest = false

    @OptionGroup var publishing: PublishingOptions
    @OptionGroup var options: AdministrationOptions

    func validate() throws {
        guard (path == nil) == rest else {
            throw ValidationError("expected either a signed policy or --rest")
        }
        if rest, let canary = publishing.canary, canary != .all {
            throw ValidationError("--rest is for all gateways; --canary does not go with it")
        }
    }

    func run() throws {
        let bytes = try path.map { try PolicyFiles.envelope($0).bytes }
        try publishing.publish(bytes, by: options.gatewayOrExit())
    }
}
