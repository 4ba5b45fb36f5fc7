import ArgumentParser
import Gateway
import PinfoldEngine

/// `pinfold reasons`: explains the reason tokens in error replies, logs and metrics.
struct Reasons: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Explain the reason tokens in error replies, logs, metrics and command output.",
        discussion: """
            Without a token, lists all tokens with their meanings. With a token, also explains \
            what to do about it.
            """)

    @Argument(help: "A reason token, as in the body of a reply, in the log or in command output.")
    var token: String?

    @Flag(help: .hidden)
    var markdown = false

    func validate() throws {
        guard let token, Self.explanation(of: token) == nil else { return }
        throw ValidationError("unknown reason \(token); `pinfold reasons` lists all of them")
    }

    func run() {
        if markdown { return writeToStandardOutput(ReasonsPage.markdown) }
        let all = ReasonsPage.list + ClientReasons.list
        writeToStandardOutput(token.flatMap(Self.explanation(of:)) ?? all)
    }

    private static func explanation(of token: String) -> String? {
        ReasonsPage.explanation(of: token) ?? ClientReasons.explanation(of: token)
    }
}
