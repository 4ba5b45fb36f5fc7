import Files
import Foundation
import TestSupport
import Testing

@testable import Gateway

/// A folder with a configuration, and its watch on a clock of the test's own.
private final class Watched {
    private let temporary = TemporaryFolder()
    var watch: ConfigurationWatch
    var now: Int64 = 1_000_000
    var folder: String { temporary.path }

    init(hasEvents: Bool = true) {
        watch =
            hasEvents
            ? ConfigurationWatch()
            : ConfigurationWatch { (_) throws(FileError) in
                throw FileError(.open, "inotify", EMFILE)
            }
    }

    func write(_ text: String, to name: String) throws {
        let path = folder + "/" + name
        try FileManager.default.createDirectory(
            atPath: (path as NSString).deletingLastPathComponent,
            withIntermediateDirectories: true)
        try text.write(toFile: path, atomically: false, encoding: .utf8)
    }

    func run(_ command: String) {
        #expect(throws: Never.self) {
            let shell = try Command("/bin/sh", ["-ec", command], in: folder)
            #expect(shell.wait().status == 0)
        }
    }

    /// Reads the configuration, and watches what was read. Returns the errors.
    @discardableResult
    func load(isOn: Bool = true) -> [String] {
        var inputs = ConfigurationInputs()
        var errors: [String] = []
        do throws(ConfigurationErrors) {
            inputs = try ConfigurationLoader(environment: testEnvironment)
                .load(file: folder + "/main.yaml").inputs
        } catch {
            inputs = error.inputs
            errors = error.errors.map(\.description)
        }
        _ = watch.follow(inputs, isOn: isOn, at: now)
        return errors
    }

    var isDueNow: Bool { watch.isDue(at: now) }

    var isActive: Bool { watch.isActive }

    var hasEvents: Bool { watch.hasEvents }

    func follow(_ inputs: ConfigurationInputs) -> FileError? {
        watch.follow(inputs, isOn: true, at: now)
    }

    /// Asks at once, and then at times of the watch's interval, without any real time going by.
    func isDue(within milliseconds: Int64) -> Bool {
        let end = now + milliseconds
        while now <= end {
            if watch.isDue(at: now) { return true }
            now += Int64(ConfigurationWatch.intervalMilliseconds)
        }
        return false
    }

    /// Whether a change leads to one reading, soon.
    func isSeen(_ place: String, _ change: () throws -> Void) rethrows {
        #expect(!isDue(within: 1000), "before \(place)")
        try change()
        #expect(isDue(within: 1000), "\(place)")
        load()
        #expect(!isDue(within: 1000), "after \(place)")
    }
}

@Suite("A configuration that is read again when its files change")
struct ConfigurationWatchTests {
    @Test func `is read after each way to write a file`() throws {
        let watched = Watched()
        try watched.write("include: ['conf.d/*.yaml']\n", to: "main.yaml")
        try watched.write("workers: 1\n", to: "conf.d/a.yaml")
        #expect(watched.load().isEmpty)
        for file in ["main.yaml", "conf.d/a.yaml"] {
            watched.isSeen("written in place: \(file)") { watched.run("echo '#' >> \(file)") }
            watched.isSeen("renamed over: \(file)") {
                watched.run("cp -p \(file) new; echo '#' >> new; mv new \(file)")
            }
            watched.isSeen("moved away and written, as vim does it: \(file)") {
                watched.run("mv \(file) \(file)~; cp -p \(file)~ \(file); echo '#' >> \(file)")
            }
            watched.isSeen("with other permissions: \(file)") { watched.run("chmod 600 \(file)") }
        }
        watched.isSeen("another included file") { watched.run("echo 'via: b' > conf.d/b.yaml") }
        watched.isSeen("changes of it") { watched.run("echo 'via: c' > conf.d/b.yaml") }
        watched.isSeen("an included file less") { watched.run("rm conf.d/b.yaml") }
        watched.isSeen("the folder replaced") {
            watched.run("cp -rp conf.d new; echo '#' >> new/a.yaml; mv conf.d old; mv new conf.d")
        }
        watched.isSeen("changes in the new folder") { watched.run("echo '#' >> conf.d/a.yaml") }
        watched.isSeen("the folder removed") { watched.run("rm -r conf.d") }
        watched.run("mkdir conf.d")
        watched.isSeen("a file in a new folder") { watched.run("echo 'via: d' > conf.d/d.yaml") }
    }

    @Test func `is read when the links of a volume are swapped`() throws {
        let watched = Watched()
        watched.run(
            """
            mkdir ..2026_01
            echo 'include: [inc/x.yaml]' > ..2026_01/main.yaml
            ln -s ..2026_01 ..data
            ln -s ..data/main.yaml main.yaml
            mkdir -p inc/..2026_01
            echo 'workers: 1' > inc/..2026_01/x.yaml
            ln -s ..2026_01 inc/..data
            ln -s ..data/x.yaml inc/x.yaml
            """)
        #expect(watched.load().isEmpty)
        for round in 2...5 {
            for (folder, text) in [(".", "include: [inc/x.yaml]"), ("inc", "workers: \(round)")] {
                watched.isSeen("swap \(round) of \(folder)") {
                    watched.run(
                        """
                        cd \(folder)
                        mkdir ..2026_0\(round)
                        echo '\(text)' > ..2026_0\(round)/\(folder == "." ? "main" : "x").yaml
                        ln -s ..2026_0\(round) ..data_tmp
                        mv -T ..data_tmp ..data
                        rm -r ..2026_0\(round - 1)
                        """)
                }
            }
        }
    }

    @Test func `is not read for other files, or for the same content elsewhere`() throws {
        let watched = Watched()
        try watched.write("include: ['conf.d/*.yaml']\n", to: "main.yaml")
        try watched.write("workers: 1\n", to: "conf.d/a.yaml")
        watched.load()
        watched.run("echo x > access.log; echo x > conf.d/.a.swp; echo x > conf.d/b.yml; mkdir c")
        watched.run("cat main.yaml conf.d/* > /dev/null; touch -c none.yaml; mkdir conf.d/sub")
        #expect(!watched.isDue(within: 60_000))
    }

    @Test func `is read with the files that it refers to, also those that are missing`() throws {
        let watched = Watched()
        try watched.write("admin: { tokenFile: secrets/token }\n", to: "main.yaml")
        #expect(watched.load().count == 1)
        watched.isSeen("the folder, though the file is missing yet") {
            watched.run("mkdir secrets; echo one > secrets/token")
        }
        watched.isSeen("the file changed") { watched.run("echo two > secrets/token") }
        watched.isSeen("the file removed") { watched.run("rm secrets/token") }
        #expect(watched.load().count == 1)
        watched.run("mkdir other; rmdir secrets")
        #expect(!watched.isDue(within: 1000))
        watched.isSeen("a folder and a file of the same names") {
            watched.run("mkdir secrets; echo one > secrets/token")
        }
        #expect(watched.load().isEmpty)
    }

    @Test func `that is refused is not read again before its files change`() throws {
        let watched = Watched()
        try watched.write("workers: 1\n", to: "main.yaml")
        watched.load()
        try watched.isSeen("an error") { try watched.write("workers: x\n", to: "main.yaml") }
        #expect(watched.load().count == 1)
        #expect(!watched.isDue(within: 600_000))
        try watched.isSeen("no error") { try watched.write("workers: 2\n", to: "main.yaml") }
    }

    @Test func `is read once after many changes, when they have ended`() throws {
        let watched = Watched()
        try watched.write("workers: 1\n", to: "main.yaml")
        watched.load()
        #expect(!watched.isDue(within: 1000))
        let quiet = ConfigurationWatch.quietMilliseconds
        for _ in 0..<10 {
            watched.run("echo '#' >> main.yaml")
            #expect(!watched.isDueNow)
            watched.now += quiet - 1
            #expect(!watched.isDueNow)
        }
        watched.now += quiet
        #expect(watched.isDueNow)
        watched.load()
        #expect(!watched.isDue(within: 60_000))
        // Something that never ends is read nevertheless.
        var readings = 0
        let start = watched.now
        while watched.now < start + 4 * ConfigurationWatch.restlessMilliseconds {
            watched.run("echo '#' >> main.yaml")
            if watched.isDueNow {
                readings += 1
                watched.load()
            }
            watched.now += 200
        }
        #expect((2...4).contains(readings), "\(readings)")
    }

    @Test func `is found to have changed while it was read`() throws {
        let watched = Watched()
        try watched.write("workers: 1\n", to: "main.yaml")
        let inputs = try ConfigurationLoader(environment: testEnvironment)
            .load(file: watched.folder + "/main.yaml").inputs
        watched.run("echo '#' >> main.yaml")
        _ = watched.follow(inputs)
        #expect(watched.isDue(within: 1000))
    }

    @Test func `is looked at every second where the system tells nothing, which is said once`()
        throws
    {
        let watched = Watched(hasEvents: false)
        try watched.write("include: ['*.inc']\n", to: "main.yaml")
        let inputs = try ConfigurationLoader(environment: testEnvironment)
            .load(file: watched.folder + "/main.yaml").inputs
        let first = watched.follow(inputs)
        #expect(first?.code == EMFILE)
        #expect(watched.follow(inputs) == nil)
        #expect(!watched.hasEvents)
        #expect(!watched.isDue(within: 10_000))
        watched.run("echo 'workers: 2' > a.inc")
        #expect(watched.isDue(within: 2000))
        watched.load()
        #expect(!watched.isDue(within: 10_000))
        watched.run("rm a.inc")
        #expect(watched.isDue(within: 2000))
    }

    /// A network's file system tells nothing about what others do.
    @Test func `is looked at now and then even where the system tells what happens`() throws {
        let watched = Watched()
        let elsewhere = TemporaryFolder()
        watched.watch = ConfigurationWatch { (_) throws(FileError) in
            try FolderEvents(watching: [elsewhere.path])
        }
        try watched.write("workers: 1\n", to: "main.yaml")
        watched.load()
        #expect(!watched.isDue(within: 1000))
        watched.run("echo '#' >> main.yaml")
        #expect(!watched.isDue(within: 5000))
        #expect(watched.isDue(within: 10_000))
    }

    @Test func `is not watched unless that is wanted`() throws {
        let watched = Watched()
        try watched.write("workers: 1\n", to: "main.yaml")
        watched.load(isOn: false)
        #expect(!watched.isActive && !watched.hasEvents)
        watched.run("echo '#' >> main.yaml")
        #expect(!watched.isDue(within: 60_000))
        watched.load(isOn: true)
        #expect(watched.isActive && watched.hasEvents)
        watched.load(isOn: false)
        #expect(!watched.isActive && !watched.hasEvents)
    }

    @Test func `needs one descriptor, however often it changes`() throws {
        func descriptors() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
                .filter { name in
                    let link = try? FileManager.default.destinationOfSymbolicLink(
                        atPath: "/proc/self/fd/" + name)
                    return link == "anon_inode:inotify"
                }.count
        }
        do {
            let watched = Watched()
            try watched.write("workers: 1\n", to: "main.yaml")
            watched.load()
            for round in 0..<50 {
                try watched.write("workers: \(round + 1)\n", to: "main.yaml")
                #expect(watched.isDue(within: 1000))
                watched.load()
            }
        }
        // Other tests have some of theirs.
        #expect(try descriptors() < 30)
    }
}
