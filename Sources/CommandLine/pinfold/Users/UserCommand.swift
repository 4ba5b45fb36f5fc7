import ArgumentParser
import Authentication
import CLinux
import Files
import PasswordChecks

/// `pinfold user`: changes a file of users.
struct UserCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user",
        abstract: "Add, remove and list the users of a file for `authentication.users`.",
        discussion: """
            The file is replaced as a whole, so that a gateway that reads it meanwhile sees the \
            former or the new content. It keeps its owner and mode; a new one is readable by its \
            owner alone. Several commands at the same time wait for each other. A running gateway \
            takes it up by itself.
            """,
        subcommands: [UserAdd.self, UserRemove.self, UserList.self])
}

/// The file of users.
struct UserFilePath: ParsableArguments {
    @Argument(help: ArgumentHelp("The file of users.", valueName: "file"), completion: .file())
    var path: String

    /// Its content; empty if it does not exist and `isNew` allows that.
    func read(isNew: Bool = false) throws -> [UInt8] {
        if isNew, !NewFiles.exists(path) { return [] }
        do throws(FileError) {
            return try OpenFile(path).contents(most: Self.maximumBytes)
        } catch {
            throw CommandError("\(path): \(error.reason)")
        }
    }

    /// What a gateway reads at most.
    private static let maximumBytes = 16 << 20

    /// Changes the file while no other command does: it waits for those that are under way.
    /// - Parameter change: the new content; it may throw, and then nothing is changed.
    func change(isNew: Bool = false, _ change: ([UInt8]) throws -> [UInt8]) throws {
        // The folder is what is locked: the file itself is another one after each change.
        let folder = Folder.of(target)
        let descriptor: Int32
        do throws(FileError) { descriptor = try Folder.open(folder) } catch {
            throw CommandError("\(path): \(error.reason)")
        }
        defer { close(descriptor) }
        let locked = uninterrupted { flock(descriptor, LOCK_EX) }
        guard locked == 0 else {
            let reason = FileError(.open, folder, -locked).reason
            throw CommandError("\(folder) cannot be locked: \(reason)")
        }
        let content = try change(try read(isNew: isNew))
        try write(content)
        warnIfUnusable(content)
    }

    /// The file that is replaced: a link stays one.
    private var target: String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Replaces the file.
    private func write(_ content: [UInt8]) throws {
        let path = target
        var status = stat()
        let isThere = stat(path, &status) == 0
        let part = UnfinishedFile.newPath(for: path)
        var files = NewFiles()
        do throws(NewFileError) {
            try files.write(content, to: part, mode: NewFiles.secret)
            if isThere {
                guard chown(part, status.st_uid, status.st_gid) == 0,
                    chmod(part, status.st_mode & 0o7777) == 0
                else { throw NewFileError(path) }
            }
            try NewFiles.replace(path, with: part)
        } catch {
            files.remove()
            throw CommandError("\(error)")
        }
    }

    /// Warns of a line because of which a gateway would not use the file.
    private func warnIfUnusable(_ content: [UInt8]) {
        do throws(CredentialsFileError) {
            _ = try UserFile(path: path, content: content)
        } catch {
            writeWarning("\(path):\(error.line): \(error.problem); expected \(error.expected)")
        }
    }
}

/// `pinfold user add`.
struct UserAdd: ParsableCommand {
    /// The functions for new passwords.
    enum Scheme: String, CaseIterable, ExpressibleByArgument {
        case bcrypt, yescrypt
    }

    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Add a user, or change a user's password.",
        discussion: """
            The password is asked for on a terminal, and otherwise is the first line of standard \
            input.
            """)

    @OptionGroup var file: UserFilePath

    @Argument(help: ArgumentHelp("The name of the user.", valueName: "name"))
    var name: String

    @Option(help: "How the password is hashed: bcrypt or yescrypt.")
    var scheme = Scheme.bcrypt

    @Option(
        help: ArgumentHelp(
            "What guessing costs: 4 to 16 for bcrypt (default: 12), 1 to 9 for yescrypt (default: "
                + "5). Each step doubles the time of a check.", valueName: "number"))
    var cost: Int?

    private var function: NewPasswordHash {
        switch scheme {
        case .bcrypt: .bcrypt(cost: cost ?? 12)
        case .yescrypt: .yescrypt(cost: cost ?? 5)
        }
    }

    func validate() throws {
        let costs = function.costs
        guard cost.map(costs.contains) ?? true else {
            throw ValidationError(
                "--cost must be from \(costs.lowerBound) to \(costs.upperBound) for "
                    + scheme.rawValue)
        }
        guard UserLines.isName(name) else {
            throw ValidationError(
                "a user's name has 1 to 256 bytes, no white space, commas or colons")
        }
    }

    func run() throws {
        // Before somebody types a password in vain.
        _ = try file.read(isNew: true)
        let password = try PasswordInput.read()
        guard let hash = function.hash(of: password) else {
            throw CommandError("the system's library cannot make a \(scheme.rawValue) hash")
        }
        try file.change(isNew: true) { UserLines.setting(name, to: hash, in: $0) }
    }
}

/// `pinfold user remove`.
struct UserRemove: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove a user.")

    @OptionGroup var file: UserFilePath

    @Argument(help: ArgumentHelp("The name of the user.", valueName: "name"))
    var name: String

    func run() throws {
        try file.change { former in
            guard let content = UserLines.removing(name, from: former) else {
                throw CommandError("\(file.path): there is no such user")
            }
            return content
        }
    }
}

/// `pinfold user list`.
struct UserList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the users, and how their passwords are hashed.")

    @OptionGroup var file: UserFilePath

    func run() throws {
        let content = try file.read()
        do throws(CredentialsFileError) {
            let users = try UserFile(path: file.path, content: content)
            let lines = users.users.map { name in
                "\(name): \(users.hash(of: name).map { "\($0.scheme)" } ?? "")\n"
            }
            writeToStandardOutput(lines.joined())
        } catch {
            throw CommandError(
                "\(file.path):\(error.line): \(error.problem); expected \(error.expected)")
        }
    }
}
