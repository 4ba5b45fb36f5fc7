import Files

/// Says when a configuration is to be read again because its files have changed (`watch: true`).
///
/// The system tells what happens in the folders, and the files are looked at once that has been
/// quiet for a moment. They are also looked at from time to time, because some file systems tell
/// nothing, and more often where the system does not offer to tell. The state that has been read,
/// with or without success, is not read again.
package struct ConfigurationWatch: ~Copyable {
    /// How often ``isDue(at:)`` is asked, in milliseconds.
    package static let intervalMilliseconds = 200
    /// How long nothing has changed before the files are read.
    static let quietMilliseconds: Int64 = 300
    /// The files are read even though something goes on changing them.
    static let restlessMilliseconds: Int64 = 5000
    /// How often the files are looked at, with and without events.
    static let lookMilliseconds: (withEvents: Int64, without: Int64) = (10_000, 1000)

    /// What has been read.
    private var read = ConfigurationInputs()
    /// What was found at the last look.
    private var seen = ConfigurationInputs()
    private var places: InputPlaces?
    private var events: FolderEvents?
    private var nextLook: Int64 = 0
    /// When something has changed for the last time, and for the first time after that was read.
    private var lastChange: Int64?
    private var firstChange: Int64 = 0
    private var isOn = false
    private let watching: (Set<String>) throws(FileError) -> FolderEvents

    /// - Parameter watching: Begins to listen to folders.
    package init(
        watching: @escaping (Set<String>) throws(FileError) -> FolderEvents = {
            (folders) throws(FileError) in try FolderEvents(watching: folders)
        }
    ) {
        self.watching = watching
    }

    /// Whether the files are watched.
    package var isActive: Bool { isOn }

    /// Whether the system tells what happens in the folders.
    package var hasEvents: Bool { events != nil }

    /// Begins to watch what has just been read, or ends it.
    ///
    /// - Parameters:
    ///   - inputs: In the state in which they were read, with or without success.
    ///   - others: Files that are not watched.
    ///   - now: Milliseconds of a monotonic clock.
    /// - Returns: why there are no events, the first time that there are none.
    package mutating func follow(
        _ inputs: ConfigurationInputs, isOn: Bool, except others: Set<String> = [], at now: Int64
    ) -> FileError? {
        guard isOn else {
            stop()
            return nil
        }
        let isNews = events != nil || !self.isOn
        self.isOn = true
        read = inputs.without(others)
        seen = read
        lastChange = nil
        let problem = listen(at: now)
        return isNews ? problem : nil
    }

    /// Begins to listen anew: folders may have been replaced by others of the same name.
    private mutating func listen(at now: Int64) -> FileError? {
        // What happens until there are events is found by the next look.
        nextLook = now
        let places = InputPlaces(of: read)
        self.places = places
        // The former end when the new ones have begun; if there is no room for both, before.
        do throws(FileError) {
            events = try watching(places.folders)
            return nil
        } catch {
            events = nil
        }
        do throws(FileError) {
            events = try watching(places.folders)
            return nil
        } catch {
            return error
        }
    }

    private mutating func stop() {
        isOn = false
        lastChange = nil
        places = nil
        events = nil
        read = ConfigurationInputs()
        seen = ConfigurationInputs()
    }

    /// Whether the files have changed and are complete, so that they are to be read. Whoever reads
    /// them calls ``follow(_:isOn:except:at:)``.
    ///
    /// - Parameter now: Milliseconds of a monotonic clock.
    package mutating func isDue(at now: Int64) -> Bool {
        guard isOn else { return false }
        takeEvents(at: now)
        if now >= nextLook { look(at: now) }
        guard let last = lastChange else { return false }
        guard now >= last + Self.quietMilliseconds || now >= firstChange + Self.restlessMilliseconds
        else { return false }
        // Something else may have come while nothing was told.
        let present = read.current()
        guard present == seen || now >= firstChange + Self.restlessMilliseconds else {
            seen = present
            lastChange = now
            return false
        }
        lastChange = nil
        if present != read { return true }
        // There may be other folders on the way to the same files.
        _ = listen(at: now)
        return false
    }

    private mutating func takeEvents(at now: Int64) {
        guard let places, events != nil else { return }
        var isConcerned = false
        events?.take { event in
            if places.concern(event) { isConcerned = true }
        }
        if isConcerned {
            seen = read.current()
            noteChange(at: now)
        }
    }

    private mutating func look(at now: Int64) {
        let times = Self.lookMilliseconds
        nextLook = now + (events == nil ? times.without : times.withEvents)
        let present = read.current()
        guard present != seen else { return }
        seen = present
        noteChange(at: now)
    }

    private mutating func noteChange(at now: Int64) {
        if lastChange == nil { firstChange = now }
        lastChange = now
    }
}
