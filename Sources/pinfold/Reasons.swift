import ArgumentParser
import Engine
import Gateway

/// `pinfold reasons`: what the tokens of error replies, logs and metrics mean.
struct Reasons: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Explain the reasons in error replies, logs and metrics.",
        discussion: """
            Without a token, prints all of them; with one, what it means and what to do about it.
            """)

    @Argument(help: "A reason, as in the reply's body or the log.")
    var token: String?

    @Flag(help: .hidden)
    var markdown = false

    func validate() throws {
        guard let token, ReasonsPage.explanation(of: token) == nil else { return }
        throw ValidationError("there is no reason \(token); `pinfold reasons` lists all")
    }

    func run() {
        if markdown { return writeToStandardOutput(ReasonsPage.markdown) }
        writeToStandardOutput(token.flatMap(ReasonsPage.explanation(of:)) ?? ReasonsPage.list)
    }
}
