import ArgumentParser
import Gateway
import PinfoldEngine

/// `pinfold reasons`: what the tokens of error replies, logs and metrics mean.
struct Reasons: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Explain the reasons in error replies, logs, metrics and of commands.",
        discussion: """
            Without a token, prints all of them; with one, what it means and what to do about it.
            """)

    @Argument(help: "A reason, as in the reply's body, the log, or what a command prints.")
    var token: String?

    @Flag(help: .hidden)
    var markdown = false

    func validate() throws {
        guard let token, Self.explanation(of: token) == nil else { return }
        throw ValidationError("there is no reason \(token); `pinfold reasons` lists all")
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
