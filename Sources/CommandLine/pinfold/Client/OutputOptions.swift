import ArgumentParser

/// Where a command writes responses, and what it says of them.
struct OutputOptions: ParsableArguments {
    @Flag(
        name: [.customShort("i"), .customLong("include")],
        help: "Print the head of the response, too, in front of its content.")
    var includesHead = false

    @Flag(
        help: "Print on standard error how long each request took, part by part; if it failed, too."
    )
    var timing = false

    @Option(
        help: ArgumentHelp(
            "URLs asked for at a time. (default: 4; with --cookie-jar 1, so that each has the "
                + "cookies of those before it)", valueName: "count"))
    var parallel: Int?

    @Flag(name: .shortAndLong, help: "No progress on standard error.")
    var silent = false

    /// URLs that are asked for at a time.
    ///
    /// - Parameter inOrder: What comes of one URL counts for the next.
    func concurrency(inOrder: Bool) -> Int { parallel ?? (inOrder ? 1 : 4) }

    func validate() throws {
        guard (1...64).contains(parallel ?? 1) else {
            throw ValidationError("--parallel takes 1 to 64")
        }
    }
}

/// How responses become files.
struct FileOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Write the content to this file: only all of it gets the name. One URL only.",
            valueName: "file"))
    var output: String?

    @Flag(
        name: [.customShort("O"), .customLong("remote-name")],
        help: "Write the content to a file of the name that the server or the URL gives.")
    var takesRemoteName = false

    @Option(
        help: ArgumentHelp("With -O: the folder of the files; else this one.", valueName: "folder"))
    var folder: String?

    @Flag(help: "Replace files that exist.")
    var replace = false

    @Flag(
        help: ArgumentHelp(
            "Go on with what an earlier download has left, if nothing has changed since."))
    var resume = false

    /// Whether content goes to files.
    var writesFiles: Bool { output != nil || takesRemoteName }

    /// - Parameter always: The command writes files whether told so or not.
    func check(urls: Int, always: Bool = false) throws {
        if output != nil, takesRemoteName { throw ValidationError("-o or -O, not both") }
        if output != nil, urls != 1 { throw ValidationError("-o takes one URL; -O takes several") }
        let writes = writesFiles || always
        if !writes, resume || replace || folder != nil {
            throw ValidationError("--resume, --replace and --folder need -o or -O")
        }
        if folder != nil, output != nil { throw ValidationError("--folder goes with -O") }
    }
}
