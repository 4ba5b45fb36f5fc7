import ArgumentParser
import HTTPCore
import HTTPTypes
import PinfoldClient

/// The arguments of every client command.
struct ClientArguments: ParsableArguments {
    @Argument(help: ArgumentHelp("Absolute http or https URLs.", valueName: "url"))
    var urls: [String]

    @OptionGroup var connection: ClientConnectionOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var files: FileOptions

    /// Checks the options for files, and those that do not go with files.
    ///
    /// - Parameter writesFiles: Whether the command writes files without being asked to.
    func check(writesFiles: Bool = false) throws {
        try files.check(urls: urls.count, always: writesFiles)
        if output.har != nil, writesFiles && !files.streams || files.writesFiles {
            throw ValidationError(
                "--har cannot be combined with -o, -O and download, which do not keep the content")
        }
    }

    /// Requests the URLs. If that is not possible at all, prints a line to standard error and
    /// throws the exit code.
    func work(
        _ method: HTTPRequest.Method, content: (any ContentSource)? = nil,
        _ change: (inout ClientWork) throws -> Void = { _ in }
    ) throws {
        do {
            let (body, bodyFields) = try content?.content() ?? (nil, [:])
            var fields = try connection.fields()
            let own = connection.headers.map { $0.prefix { !":;".contains($0) }.lowercasedASCII }
            for field in bodyFields where !own.contains(field.name.canonicalName) {
                fields[field.name] = field.value
            }
            let parallel = output.concurrency(inOrder: connection.cookieJar != nil)
            let urls = urls.map(CompletedURL.text)
            let format = try output.writeOut.map { try WriteOut(argument: $0) }
            let recorder =
                output.har != nil || format != nil
                ? ExchangeRecorder(keepsExchanges: output.har != nil) : nil
            var monitors: [any EventMonitor] = recorder.map { [$0] } ?? []
            if output.verbose {
                monitors.append(VerboseMonitor(print: { writeToStandardError($0) }))
            }
            var work = ClientWork(
                method: method, fields: fields, content: body,
                session: try connection.session(
                    for: urls, parallel: parallel, monitors: monitors),
                output: output, parallel: parallel,
                files: files, writesFiles: files.writesFiles, pins: connection.pins,
                format: format, recorder: recorder)
            try change(&work)
            // Cookies are saved even if requests failed.
            let result = Result { try work.run(urls) }
            try work.session.configuration.cookies?.save()
            try result.get()
        } catch let failure as ClientCommandError {
            writeError("\(failure)")
            throw ExitCode(failure.exit.rawValue)
        } catch let error as ClientError {
            writeError("\(ClientCommandError(error, pins: connection.pins))")
            throw ExitCode(ClientExit(error).rawValue)
        }
    }
}

/// A client command. By default it writes files only on request, and validates only the file
/// options.
protocol ClientCommand: ParsableCommand {
    var arguments: ClientArguments { get }
}

extension ClientCommand {
    func validate() throws { try arguments.check() }
}

/// A client command that sends content with a fixed method.
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
        abstract: "Fetch URLs with GET and print the content.", discussion: ClientExit.help)

    @OptionGroup var arguments: ClientArguments

    @Option(
        name: [.customShort("X"), .customLong("request")],
        help: ArgumentHelp("Use this method instead of GET.", valueName: "method"))
    var method: String?

    @OptionGroup var form: FormDataOptions

    func validate() throws {
        try arguments.check()
        if let method, HTTPRequest.Method(rawValue: method) == nil || method == "CONNECT" {
            throw ValidationError("-X \(method): expected the name of a method, such as PUT")
        }
    }

    func run() throws {
        let method = method.flatMap { HTTPRequest.Method(rawValue: $0) }
        try arguments.work(method ?? (form.data.isEmpty ? .get : .post), content: form)
    }
}

/// `pinfold head URL…`.
struct Head: ClientCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send HEAD requests and print the response headers.",
        discussion: ClientExit.help)

    @OptionGroup var arguments: ClientArguments

    func validate() throws {
        if arguments.files.writesFiles {
            throw ValidationError("head cannot write to a file; remove -o and -O")
        }
        try arguments.check()
    }

    func run() throws { try arguments.work(.head) { $0.headOnly = true } }
}

/// `pinfold post URL…`.
struct Post: SendingCommand {
    static let method = HTTPRequest.Method.post
    static let abstract = "Send content with POST and print the response."

    @OptionGroup var arguments: ClientArguments
    @OptionGroup var content: ContentOptions
}

/// `pinfold put URL…`.
struct Put: SendingCommand {
    static let method = HTTPRequest.Method.put
    static let abstract = "Send content with PUT and print the response."

    @OptionGroup var arguments: ClientArguments
    @OptionGroup var content: ContentOptions
}

/// `pinfold patch URL…`.
struct Patch: SendingCommand {
    static let method = HTTPRequest.Method.patch
    static let abstract = "Send content with PATCH and print the response."

    @OptionGroup var arguments: ClientArguments
    @OptionGroup var content: ContentOptions
}

/// `pinfold delete URL…`.
struct Delete: SendingCommand {
    static let method = HTTPRequest.Method.delete
    static let abstract = "Send DELETE requests and print the responses."

    @OptionGroup var arguments: ClientArguments
    @OptionGroup var content: ContentOptions
}

/// `pinfold upload URL… --file FILE`.
struct Upload: ClientCommand {
    static let configuration = CommandConfiguration(
        abstract: "Upload a file with PUT or POST, showing progress, and print the response.",
        discussion: ClientExit.help)

    @OptionGroup var arguments: ClientArguments

    @Option(help: ArgumentHelp("The file to upload.", valueName: "file"), completion: .file())
    var file: String

    @Option(help: ArgumentHelp("PUT or POST.", valueName: "method"))
    var method = "PUT"

    func validate() throws {
        try arguments.check()
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
        abstract: "Download URLs to files, showing progress.",
        discussion: """
            A file gets its name once it is complete and stored on disk. Until then, its content \
            is in a partial file (.part), with resume data next to it if the server can send the \
            rest later. --resume continues such a download, even if the program was killed, \
            provided that the content on the server has not changed; otherwise the download \
            starts over. Existing files are replaced only with --replace.

            \(ClientExit.help)
            """)

    @OptionGroup var arguments: ClientArguments

    func validate() throws {
        try arguments.check(writesFiles: true)
    }

    func run() throws { try arguments.work(.get) { $0.writesFiles = !arguments.files.streams } }
}
