import ArgumentParser
import HTTPCore
import HTTPTypes
import PinfoldClient

/// What every command of the client takes.
struct ClientArguments: ParsableArguments {
    @Argument(help: ArgumentHelp("Absolute http or https URLs.", valueName: "url"))
    var urls: [String]

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var files: FileOptions

    /// Asks for the URLs; with what cannot be done at all, a line and its exit code.
    func work(
        _ method: HTTPRequest.Method, content: ContentOptions? = nil,
        _ change: (inout ClientWork) throws -> Void = { _ in }
    ) throws {
        do {
            let (body, bodyFields) = try content?.content() ?? (nil, [:])
            var fields = try connection.fields()
            let own = connection.headers.map { $0.prefix { $0 != ":" }.lowercasedASCII }
            for field in bodyFields where !own.contains(field.name.canonicalName) {
                fields[field.name] = field.value
            }
            let parallel = output.concurrency(inOrder: connection.cookieJar != nil)
            var work = ClientWork(
                method: method, fields: fields, content: body,
                session: try connection.session(for: urls, parallel: parallel),
                output: output, parallel: parallel,
                files: files, writesFiles: files.writesFiles, pins: connection.pins)
            try change(&work)
            // Cookies are kept, whatever became of the requests.
            let result = Result { try work.run(urls) }
            try work.session.configuration.cookies?.save()
            try result.get()
        } catch let failure as ClientFailure {
            writeToStandardError("pinfold: \(failure)\n")
            throw ExitCode(failure.exit.rawValue)
        } catch let error as ClientError {
            writeToStandardError("pinfold: \(ClientFailure(error, pins: connection.pins))\n")
            throw ExitCode(ClientExit(error).rawValue)
        }
    }
}

/// A command of the client's. It writes files only if told so, and nothing else is to be checked,
/// unless it says otherwise itself.
protocol ClientCommand: ParsableCommand {
    var arguments: ClientArguments { get }
}

extension ClientCommand {
    func validate() throws { try arguments.files.check(urls: arguments.urls.count) }
}

/// One that sends content with a method of its own.
protocol SendingCommand: ClientCommand {
    static var method: HTTPRequest.Method { get }
    static var abstract: String { get }
    var content: ContentOptions { get }
}

extension SendingCommand {
    static var configuration: CommandConfiguration {
        CommandConfiguration(abstract: abstract, discussion: ClientExit.help)
    }

    func run() throws { try arguments.work(Self.method, content: content) }
}

/// `pinfold get URL…`.
struct Get: ClientCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ask for URLs with GET, and print what comes.", discussion: ClientExit.help)

    @OptionGroup var arguments: ClientArguments

    func run() throws { try arguments.work(.get) }
}

/// `pinfold head URL…`.
struct Head: ClientCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ask for the heads of responses with HEAD, and print them.",
        discussion: ClientExit.help)

    @OptionGroup var arguments: ClientArguments

    func validate() throws {
        if arguments.files.writesFiles { throw ValidationError("a head is not written to a file") }
        try arguments.files.check(urls: arguments.urls.count)
    }

    func run() throws { try arguments.work(.head) { $0.headOnly = true } }
}

/// `pinfold post URL…`.
struct Post: SendingCommand {
    static let method = HTTPRequest.Method.post
    static let abstract = "Send content with POST, and print what comes."

    @OptionGroup var arguments: ClientArguments
    @OptionGroup var content: ContentOptions
}

/// `pinfold put URL…`.
struct Put: SendingCommand {
    static let method = HTTPRequest.Method.put
    static let abstract = "Send content with PUT, and print what comes."

    @OptionGroup var arguments: ClientArguments
    @OptionGroup var content: ContentOptions
}

/// `pinfold patch URL…`.
struct Patch: SendingCommand {
    static let method = HTTPRequest.Method.patch
    static let abstract = "Send content with PATCH, and print what comes."

    @OptionGroup var arguments: ClientArguments
    @OptionGroup var content: ContentOptions
}

/// `pinfold delete URL…`.
struct Delete: SendingCommand {
    static let method = HTTPRequest.Method.delete
    static let abstract = "Ask to delete with DELETE, and print what comes."

    @OptionGroup var arguments: ClientArguments
    @OptionGroup var content: ContentOptions
}

/// `pinfold upload URL… --file FILE`.
struct Upload: ClientCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send a file with PUT, with progress, and print what comes.",
        discussion: ClientExit.help)

    @OptionGroup var arguments: ClientArguments

    @Option(help: ArgumentHelp("The file to send.", valueName: "file"))
    var file: String

    @Option(help: ArgumentHelp("PUT or POST.", valueName: "method"))
    var method = "PUT"

    func validate() throws {
        try arguments.files.check(urls: arguments.urls.count)
        guard method == "PUT" || method == "POST" else {
            throw ValidationError("--method \(method): expected PUT or POST")
        }
    }

    func run() throws {
        try arguments.work(method == "PUT" ? .put : .post) { work in
            work.content = try .file(file)
            work.showsUpload = true
        }
    }
}

/// `pinfold download URL…`.
struct DownloadCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "download",
        abstract: "Download URLs to files, with progress.",
        discussion: """
            Each file gets its name when all of it is there and on the disk; until then it is a \
            partial file (.part), with its resume data beside it where the server can send the \
            rest. With --resume that is gone on with, also after the program was killed, on the \
            condition that nothing has changed; else it begins anew. Files that exist are not \
            replaced without --replace.

            \(ClientExit.help)
            """)

    @OptionGroup var arguments: ClientArguments

    func validate() throws {
        try arguments.files.check(urls: arguments.urls.count, always: true)
    }

    func run() throws { try arguments.work(.get) { $0.writesFiles = true } }
}
