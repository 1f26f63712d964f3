//! Letters under way, as they are drawn: a track beside the sender's lifeline for each link that has any.
//!
//! Links are first in, first out, so one track is enough for all letters of a link. It opens when the first is sent, and
//! ends when the last has arrived.

use super::Chart;
use std::collections::BTreeMap;

/// The lifelines at the two ends of one direction of a link.
pub(super) type Link = (usize, usize);

/// A track: how far from its lifeline, counted from 1, and how many letters are on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) distance: usize,
    pub(super) letters: usize,
}

/// The tracks that are open.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracks {
    open: BTreeMap<Link, Track>,
}

impl Tracks {
    /// The tracks before the first row.
    pub(super) fn new(chart: &Chart) -> Self {
        let mut tracks = Self::default();
        for arrow in chart.arrows.iter().filter(|arrow| arrow.sent.is_none()) {
            tracks.send((arrow.from, arrow.to));
        }
        tracks
    }

    /// Every track that is open.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Link, Track)> {
        self.open.iter().map(|(link, track)| (*link, *track))
    }

    /// Puts a letter on its track; says whether that is new.
    pub(super) fn send(&mut self, link: Link) -> (Track, bool) {
        if let Some(track) = self.open.get_mut(&link) {
            track.letters += 1;
            return (*track, false);
        }
        let taken: Vec<usize> = self.beside(link.0, link.1 > link.0).collect();
        let distance = (1..=taken.len() + 1).find(|distance| !taken.contains(distance)).unwrap_or(1);
        let track = Track { distance, letters: 1 };
        self.open.insert(link, track);
        (track, true)
    }

    /// Takes a letter off its track; says how many are left.
    pub(super) fn arrive(&mut self, link: Link) -> Option<Track> {
        let track = self.open.get_mut(&link)?;
        track.letters -= 1;
        let left = *track;
        if left.letters == 0 {
            self.open.remove(&link);
        }
        Some(left)
    }

    /// How far the outermost track on one side of a lifeline is.
    pub(super) fn breadth(&self, lifeline: usize, right: bool) -> usize {
        self.beside(lifeline, right).max().unwrap_or(0)
    }

    fn beside(&self, lifeline: usize, right: bool) -> impl Iterator<Item = usize> {
        let there = self.open.iter().filter(move |((from, to), _)| *from == lifeline && (to > from) == right);
        there.map(|(_, track)| track.distance)
    }
}
