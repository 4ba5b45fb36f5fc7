import ArgumentParser

/// The options for what a command prints.
struct OutputOptions: ParsableArguments {
    @Flag(
        name: [.customShort("i"), .customLong("include")],
        help: "Print the response headers before the content.")
    var includesHead = false

    @Flag(
        name: [.customShort("f"), .customLong("fail")],
        help: "Print no content of responses with a status of 400 or above.")
    var fails = false

    @Option(
        name: [.customShort("w"), .customLong("write-out")],
        help: ArgumentHelp(
            "Print this after each response, with curl's variables, such as %{http_code}, "
                + "%{time_total} and \\n, or what a file (@FILE) or standard input (@-) has; "
                + "for URLs without a response, too, whose %{http_code} is 000.",
            valueName: "format|@file"))
    var writeOut: String?

    @Flag(
        name: [.customShort("v"), .customLong("verbose")],
        help: ArgumentHelp(
            "Print requests, responses, their timing, and the TLS version, cipher suite and "
                + "certificate of new connections to standard error."))
    var verbose = false

    @Option(
        help: ArgumentHelp(
            "Write every request and response to this new file, as an HTTP Archive, redirects, "
                + "retries and failures as well; credentials and cookies are masked. Not with "
                + "files (-o, -O and download).",
            valueName: "file"), completion: .file())
    var har: String?

    @Option(
        help: ArgumentHelp(
            "Print JSON indented and in colours: auto (if standard output is a terminal), always "
                + "or never.", valueName: "when"))
    var pretty = PrettyOutput.auto

    @Flag(
        help: "Print the timing of each request, including failed ones, to standard error.")
    var timing = false

    @Option(
        help: ArgumentHelp(
            "Request this many URLs at a time. (default: 4, or 1 with --cookie-jar, so that each "
                + "request has the cookies of the earlier ones)", valueName: "count"))
    var parallel: Int?

    @Flag(name: .shortAndLong, help: "Do not show progress on standard error.")
    var silent = false

    @Flag(
        name: [.customShort("S"), .customLong("show-error")],
        help: ArgumentHelp("Print errors, as is done anyway.", visibility: .hidden))
    var showsErrors = false

    /// The number of URLs requested at a time.
    ///
    /// - Parameter inOrder: Whether the result of one request affects the next.
    func concurrency(inOrder: Bool) -> Int { parallel ?? (inOrder ? 1 : 4) }

    func validate() throws {
        if let writeOut, !writeOut.hasPrefix("@") { _ = try WriteOut(writeOut) }
        if har == "-" {
            throw ValidationError(
                "--har -: expected the name of a new file; standard output has the content")
        }
        guard (1...64).contains(parallel ?? 1) else {
            throw ValidationError("--parallel must be from 1 to 64")
        }
    }
}

/// The options for writing responses to files.
struct FileOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Write the content to this file, which appears once it is complete; to standard output "
                + "(-), a device or a pipe as it arrives. For one URL only.",
            valueName: "file"), completion: .file())
    var output: String?

    @Flag(
        name: [.customShort("O"), .customLong("remote-name")],
        help: "Write the content to a file named by the server or the URL.")
    var takesRemoteName = false

    @Option(
        help: ArgumentHelp(
            "With -O: write the files to this directory instead of the current one.",
            valueName: "directory"), completion: .directory)
    var folder: String?

    @Flag(help: "Replace existing files.")
    var replace = false

    @Flag(help: "Resume an earlier download, if the content has not changed since.")
    var resume = false

    /// Whether content is written to files.
    var writesFiles: Bool { output != nil && !streams || takesRemoteName }

    /// Checks the options against each other.
    ///
    /// - Parameter always: Whether the command writes files without being asked to.
    func check(urls: Int, always: Bool = false) throws {
        if output != nil, takesRemoteName {
            throw ValidationError("-o and -O cannot be combined")
        }
        if output != nil, urls != 1 {
            throw ValidationError("-o is for one URL only; use -O for several")
        }
        if streams, resume {
            throw ValidationError("--resume needs a file; -o \(output ?? "") is not one")
        }
        let writes = output != nil || takesRemoteName || always
        if !writes, resume || replace || folder != nil {
            throw ValidationError("--resume, --replace and --folder need -o or -O")
        }
        if folder != nil, output != nil { throw ValidationError("--folder works only with -O") }
    }
}
